import { type Kind, text, url } from "../../runtime/setting-kinds.ts";
import { optional, SettingsError, setting, type ValuesOf } from "../../runtime/settings.ts";
import type { KeystoneSessionSettings, ServiceCredentials } from "./keystone-session.ts";

const secretText: Kind<string> = { ...text(), secret: true };

/** The settings with which a service logs in to Keystone. Spread them into a declaration. */
export const loginOptions = {
  keystoneUrl: optional(url("http", "https"), {
    about: "URL of Keystone, like http://keystone:5000/v3; for --auth keystone, and for other OpenStack services",
  }),
  keystoneUser: setting(text(), {
    about: "the user with which this service logs in to validate tokens and to call other services",
    default: "placement",
  }),
  keystonePassword: optional(secretText, { about: "that user's password; give it in the environment or in a file" }),
  keystoneProject: setting(text(), { about: "that user's project", default: "service" }),
  keystoneUserDomain: setting(text(), {
    about: "the user's domain",
    default: "Default",
  }),
  keystoneProjectDomain: setting(text(), {
    about: "the project's domain",
    default: "Default",
  }),
  keystoneApplicationCredentialId: optional(text(), {
    about: "id of an application credential, with which this service logs in instead of a user and password",
  }),
  keystoneApplicationCredentialSecret: optional(secretText, {
    about: "secret of the application credential; give it in the environment or in a file",
  }),
};

export type LoginOptions = ValuesOf<typeof loginOptions>;

/** The missing settings of a login, one line each. `needs` is the part of the sentence that says what for. */
function loginFaults(options: LoginOptions, needs: string): readonly string[] {
  const missing = (name: string): string => `${name} is missing: ${needs}`;
  const { keystoneApplicationCredentialId: id, keystoneApplicationCredentialSecret: secret } = options;
  const faults = options.keystoneUrl === null ? [missing("BERTH_KEYSTONE_URL (--keystone-url)")] : [];
  if (id === null && secret === null) {
    if (options.keystonePassword === null) faults.push(missing("BERTH_KEYSTONE_PASSWORD (--keystone-password)"));
  } else if (id === null || secret === null) {
    const name = id === null ? "ID (--keystone-application-credential-id)" : "SECRET";
    faults.push(
      `BERTH_KEYSTONE_APPLICATION_CREDENTIAL_${name} is missing: an application credential has an id and a secret`,
    );
  }
  return faults;
}

/**
 * Returns the address of Keystone and the credentials. Throws `SettingsError` when the settings are incomplete; `needs` then says what for, such as
 * `--auth keystone needs it`.
 */
export function loginOf(
  options: LoginOptions,
  needs: string,
  { system = false }: { readonly system?: boolean } = {},
): Pick<KeystoneSessionSettings, "url" | "credentials"> {
  const faults = [...loginFaults(options, needs)];
  const credentials = credentialsOf(options);
  if (system && credentials.kind === "application-credential")
    faults.push(
      "BERTH_KEYSTONE_APPLICATION_CREDENTIAL_ID (--keystone-application-credential-id) does not go with --quotas unified: limits are read with a role on the system, and an application credential belongs to a project; set BERTH_KEYSTONE_USER and BERTH_KEYSTONE_PASSWORD",
    );
  if (options.keystoneUrl === null || faults.length > 0) throw new SettingsError(faults);
  const isOfSystem = system && credentials.kind === "password";
  return { url: options.keystoneUrl, credentials: isOfSystem ? { ...credentials, system } : credentials };
}

function credentialsOf(options: LoginOptions): ServiceCredentials {
  const { keystoneApplicationCredentialId: id, keystoneApplicationCredentialSecret: secret } = options;
  if (id !== null && secret !== null) return { kind: "application-credential", id, secret };
  return {
    kind: "password",
    user: options.keystoneUser,
    password: options.keystonePassword ?? "",
    project: options.keystoneProject,
    userDomain: options.keystoneUserDomain,
    projectDomain: options.keystoneProjectDomain,
  };
}

import { conductorDeclaration } from "../services/conductor/settings.ts";

/** Names of all settings that a conductor declares; law 3 is checked against them. */
export const conductorSettingNames: readonly string[] = Object.keys(conductorDeclaration.settings);

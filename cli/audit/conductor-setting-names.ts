import { conductorDeclaration } from "../../services/conductor/settings.ts";

/** Everything that a conductor can be told, by its declaration: what law 3 is checked against. */
export const conductorSettingNames: readonly string[] = Object.keys(conductorDeclaration.settings);

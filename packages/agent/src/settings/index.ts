export { SETTING_KEYS, INSTRUCTION_KEYS, withCompanions, type SettingKey, type SettingsPatch } from "./patch.ts";
export {
  resolveSettings,
  type SettingsAnswer,
  type SettingsLayer,
  type SettingSource,
  type SettingsQuestion,
} from "./resolve.ts";
export { storedSettings, type StoredSettings } from "./stored.ts";
export { storedForm, storedKey } from "./stored-keys.ts";

import { expect, test } from "vitest";
import { resolveSettings, type SettingsLayer } from "./resolve.ts";

const HOSTS = ["example.org"];
const layer = (source: SettingsLayer["source"], values: SettingsLayer["values"]): SettingsLayer => ({ source, values });
const NONE = layer("default", { networkAccess: false });

test.for<readonly [string, readonly SettingsLayer[], readonly string[] | undefined]>([
  [
    "a list narrows the access of its own layer",
    [NONE, layer("file", { networkAccess: true, networkHosts: HOSTS })],
    HOSTS,
  ],
  [
    "a list counts more than earlier access",
    [layer("file", { networkAccess: true }), layer("flag", { networkHosts: HOSTS })],
    HOSTS,
  ],
  [
    "later access counts more than a list",
    [layer("file", { networkHosts: HOSTS }), layer("flag", { networkAccess: true })],
    undefined,
  ],
  [
    "a network that is turned off later has no list",
    [layer("file", { networkHosts: HOSTS }), layer("flag", { networkAccess: false })],
    undefined,
  ],
])("%s", ([, asked, hosts]) => {
  expect(resolveSettings({ config: [], asked }).values.networkHosts).toEqual(hosts);
});

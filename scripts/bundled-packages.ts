/**
 * What the published package carries of others: its bundles hold their code, so npm cannot list it. Writes a bill of
 * materials (CycloneDX, `sbom.cdx.json`) and the licences that go with the code (`third-party-licenses.txt`).
 * Usage: node scripts/bundled-packages.ts [--out DIR]
 */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { rolldown } from "rolldown";

interface Package {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly folder: string;
}

const root = path.join(import.meta.dirname, "..");
const ENTRIES = [
  "packages/cli/src/main.ts",
  "packages/cli/src/engine/index.ts",
  "packages/client/src/index.ts",
  "apps/dashboard/src/main.tsx",
  "apps/dashboard/src/still/render.tsx",
];

const { values } = parseArgs({
  options: { out: { type: "string", default: path.join(root, "packages", "cli", "dist") } },
});
const packages = await bundledPackages();
const own = readManifest(path.join(root, "packages", "cli"));
mkdirSync(values.out, { recursive: true });
writeFileSync(path.join(values.out, "sbom.cdx.json"), `${JSON.stringify(billOfMaterials(own, packages), null, 2)}\n`);
writeFileSync(path.join(values.out, "third-party-licenses.txt"), packages.map(licenceOf).join("\n"));
console.log(`${packages.length} packages are bundled`);

/** Every folder of node_modules that a module of a bundle comes from. */
async function bundledPackages(): Promise<readonly Package[]> {
  await using build = await rolldown({
    input: ENTRIES.map((entry) => path.join(root, entry)),
    platform: "node",
    // The style sheet that stands in a page is Heddle's own.
    external: [/^node:/, /\.css\?inline$/],
    resolve: { conditionNames: ["heddle-source", "node", "default"] },
    logLevel: "silent",
  });
  const { output } = await build.generate({ format: "esm" });
  const folders = new Set<string>();
  for (const file of output) {
    for (const id of file.type === "chunk" ? file.moduleIds : []) {
      const [, folder] = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id.replaceAll("\\", "/")) ?? [];
      if (folder !== undefined) folders.add(folder);
    }
  }
  // The same version may be installed in two folders.
  const byPurl = new Map([...folders].map(readManifest).map((one) => [purlOf(one), one]));
  return [...byPurl].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
}

function readManifest(folder: string): Package {
  const { name, version, license } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8")) as {
    readonly [key: string]: unknown;
  };
  if (typeof name !== "string" || typeof version !== "string") throw new Error(`${folder} has no name or version`);
  if (typeof license !== "string") throw new Error(`${name} names no licence; find out before it is shipped`);
  return { name, version, license, folder };
}

/** Without time and chance, so that the same sources give the same file. */
function billOfMaterials(own: Package, bundled: readonly Package[]): object {
  const refs = bundled.map(purlOf);
  const serial = createHash("sha256")
    .update([purlOf(own), ...refs].join("\n"))
    .digest("hex");
  const uuid = [
    serial.slice(0, 8),
    serial.slice(8, 12),
    `5${serial.slice(13, 16)}`,
    `8${serial.slice(17, 20)}`,
    serial.slice(20, 32),
  ];
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: `urn:uuid:${uuid.join("-")}`,
    version: 1,
    metadata: { lifecycles: [{ phase: "build" }], component: { ...componentOf(own), type: "application" } },
    components: bundled.map((one) => ({ ...componentOf(one), type: "library" })),
    dependencies: [{ ref: purlOf(own), dependsOn: refs }, ...refs.map((ref) => ({ ref, dependsOn: [] }))],
  };
}

function componentOf(one: Package): object {
  const [scope, name] = one.name.startsWith("@") ? one.name.split("/") : [undefined, one.name];
  return {
    "bom-ref": purlOf(one),
    ...(scope === undefined ? {} : { group: scope }),
    name,
    version: one.version,
    licenses: [/ (OR|AND) /.test(one.license) ? { expression: one.license } : { license: { id: one.license } }],
    purl: purlOf(one),
  };
}

function purlOf({ name, version }: Package): string {
  return `pkg:npm/${name.replace(/^@/, "%40")}@${version}`;
}

function licenceOf({ name, version, license, folder }: Package): string {
  const text =
    licenceFile(folder) ?? licenceInReadme(folder) ?? `The package brings no text of its licence, ${license}.`;
  return `${"=".repeat(80)}\n${name} ${version} (${license})\n${"=".repeat(80)}\n\n${text.trimEnd()}\n`;
}

function licenceFile(folder: string): string | undefined {
  const file = readdirSync(folder).find((entry) => /^licen[cs]e(\.(md|txt))?$/i.test(entry));
  return file === undefined ? undefined : readFileSync(path.join(folder, file), "utf8");
}

/** Some packages bring it only as the last part of their README. */
function licenceInReadme(folder: string): string | undefined {
  const file = readdirSync(folder).find((entry) => /^readme\.md$/i.test(entry));
  if (file === undefined) return undefined;
  const [, text] =
    /^#+ licen[cs]e\s+([^#]*Permission is hereby granted[^#]*)/im.exec(readFileSync(path.join(folder, file), "utf8")) ??
    [];
  return text;
}

/** The package as users get it: packed from a folder of its own, and installed without a network into an empty one. */
import { execFile, spawnSync } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";

export const REPOSITORY = path.join(import.meta.dirname, "..", "..", "..");
const CLI = path.join(REPOSITORY, "packages", "cli");

export const OLD_NODE = ["/usr/bin/node", "/usr/local/bin/node"].find((file) => {
  const version = spawnSync(file, ["-p", "process.versions.node"], { encoding: "utf8" }).stdout ?? "";
  const major = Number(version.split(".")[0]);
  return major >= 20 && major < 24;
});

export interface PackedPackage extends AsyncDisposable {
  readonly tarball: string;
  /** What is in the tarball. */
  readonly files: readonly string[];
  /** An otherwise empty folder with the package in its node_modules. */
  readonly project: string;
  /** The package in there. */
  readonly installed: string;
  readonly launcher: string;
  npm(args: readonly string[], cwd: string): Promise<string>;
}

/** The same steps as `prepack`, but nothing is written into the checkout. */
export async function packAndInstall(): Promise<PackedPackage> {
  const root = await realpath(await mkdtemp(path.join(tmpdir(), "heddle-packed-")));
  const folder = path.join(root, "package");
  const project = path.join(root, "project");
  const env = { PATH: process.env["PATH"] ?? "", HOME: root, TMPDIR: tmpdir() };
  const run = promisify(execFile);
  const npm = async (args: readonly string[], cwd: string): Promise<string> =>
    (await run("npm", [...args], { cwd, env, shell: process.platform === "win32" })).stdout;
  await mkdir(path.join(folder, "dist"), { recursive: true });
  await mkdir(project);
  for (const name of ["package.json", "README.md", "LICENSE", "NOTICE", "bin"])
    await cp(path.join(CLI, name), path.join(folder, name), { recursive: true });
  for (const script of await prepackScripts())
    await run(process.execPath, [path.join(REPOSITORY, "scripts", script), "--out", path.join(folder, "dist")], {
      env,
    });
  const packed = await npm(["pack", "--ignore-scripts", "--json", "--loglevel=error"], folder);
  const [{ filename, files: listed }] = JSON.parse(packed) as [{ filename: string; files: { path: string }[] }];
  const tarball = path.join(folder, filename);
  await writeFile(path.join(project, "package.json"), `{"name": "empty", "private": true, "type": "module"}\n`);
  await npm(["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", tarball], project);
  const installed = path.join(project, "node_modules", "heddle");
  return {
    tarball,
    files: listed.map(({ path: file }) => file).toSorted(),
    project,
    installed,
    launcher: path.join(installed, "bin", "heddle.cjs"),
    npm,
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true, maxRetries: 5 }),
  };
}

async function prepackScripts(): Promise<readonly string[]> {
  const { scripts } = JSON.parse(await readFile(path.join(CLI, "package.json"), "utf8")) as {
    readonly scripts: { readonly prepack: string };
  };
  return [...scripts.prepack.matchAll(/scripts\/([\w-]+\.ts)/g)].map(([, name = ""]) => name);
}

/** Copies the programs of `examples/` that import the package. */
export async function copyExamples(project: string): Promise<readonly string[]> {
  const folder = path.join(REPOSITORY, "examples");
  const names = (await readdir(folder)).filter((name) => name.endsWith(".ts")).toSorted();
  for (const name of names) await cp(path.join(folder, name), path.join(project, name));
  return names;
}

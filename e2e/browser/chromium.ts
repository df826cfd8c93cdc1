/**
 * A Chromium from the packages of the tree, the same on every machine: it is unpacked into the folder of the run, brings
 * the libraries that a bare system lacks, and sees no fonts but those of the tree, so that pictures do not depend on the host.
 * HEDDLE_E2E_CHROMIUM names another one, for systems that the package has none for.
 */
import { readdir, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { inflate } from "@sparticuz/chromium";
import { chromium, type Browser } from "playwright-core";
import { writeFonts } from "./fonts.ts";

export interface UnpackedChromium {
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
}

const PARTS = ["chromium.br", "fonts.tar.br", "al2023.tar.br"] as const;
const NAME = "HEDDLE_E2E_CHROMIUM";
/** No sandbox of its own, because tests run as root too; nothing that weakens what the pages are tested for. */
const ARGS = [
  "--no-sandbox",
  "--no-zygote",
  "--disable-gpu",
  "--font-render-hinting=none",
  "--force-color-profile=srgb",
  "--disable-lcd-text",
];

/** Below the folder that TMPDIR names, which belongs to the run and is removed with it. */
export async function unpackChromium(): Promise<UnpackedChromium> {
  const own = process.env[NAME];
  if (own !== undefined) return { program: own, env: {} };
  if (process.platform !== "linux" || process.arch !== "x64") {
    throw new Error(`no Chromium for ${process.platform} ${process.arch} is in the tree: name one in ${NAME}`);
  }
  const bin = path.join(path.dirname(createRequire(import.meta.url).resolve("@sparticuz/chromium")), "..", "bin");
  const [program, fonts, libraries] = await Promise.all(PARTS.map((part) => inflate(path.join(bin, part))));
  if (program === undefined || fonts === undefined || libraries === undefined) throw new Error("nothing was unpacked");
  await writeFonts(fonts);
  await useOnlyFontsOf(fonts);
  return { program, env: { LD_LIBRARY_PATH: path.join(libraries, "lib"), FONTCONFIG_PATH: fonts } };
}

async function useOnlyFontsOf(folder: string): Promise<void> {
  const names = await readdir(folder);
  if (names.length === 0) throw new Error(`no fonts in ${folder}`);
  const dirs = `<dir>${folder}</dir><cachedir>${folder}/cache</cachedir>`;
  await writeFile(path.join(folder, "fonts.conf"), `<?xml version="1.0"?><fontconfig>${dirs}</fontconfig>\n`);
}

export async function launch({ program, env }: UnpackedChromium): Promise<Browser> {
  return await chromium.launch({ executablePath: program, args: ARGS, env: { ...ownEnv(), ...env } });
}

function ownEnv(): Record<string, string> {
  return Object.fromEntries(Object.entries(process.env).flatMap(([name, value]) => (value ? [[name, value]] : [])));
}

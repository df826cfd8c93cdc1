/** The check that runs the tests of a project, read from the files that its own tools read. */
import { readFile } from "node:fs/promises";
import path from "node:path";

/** As a line of `checks`; undefined: no tests were found. */
export async function findTests(folder: string): Promise<string | undefined> {
  const read = (name: string): Promise<string | undefined> =>
    readFile(path.join(folder, name), "utf8").catch(() => undefined);
  for (const [name, checkIn] of PROJECT_FILES) {
    const text = await read(name);
    const check = text === undefined ? undefined : await checkIn(text, read);
    if (check !== undefined) return check;
  }
  return undefined;
}

type Read = (name: string) => Promise<string | undefined>;

const PROJECT_FILES: readonly (readonly [string, (text: string, read: Read) => Promise<string | undefined>])[] = [
  ["package.json", nodeTests],
  ["pyproject.toml", pythonTests],
  ["setup.py", pythonTests],
  ["pytest.ini", async () => PYTEST],
  ["Cargo.toml", async () => "tests: cargo test"],
  ["go.mod", async () => "tests: go test -v ./..."],
  ["Makefile", async (text) => (/^test:/m.test(text) ? "command: make test" : undefined)],
];

/** What `npm init` writes as the test of a project that has none. */
const NO_TEST = "no test specified";
const PYTEST = "tests: python3 -m pytest";

async function nodeTests(text: string, read: Read): Promise<string | undefined> {
  const test = testScript(text);
  if (test === undefined || test.includes(NO_TEST)) return undefined;
  if ((await read("pnpm-lock.yaml")) !== undefined) return "tests: pnpm test";
  return (await read("yarn.lock")) === undefined ? "tests: npm test" : "tests: yarn test";
}

function testScript(text: string): string | undefined {
  try {
    const test: unknown = JSON.parse(text)?.scripts?.test;
    return typeof test === "string" ? test : undefined;
  } catch {
    return undefined;
  }
}

async function pythonTests(text: string, read: Read): Promise<string> {
  const usesPytest = text.includes("pytest") || (await read("conftest.py")) !== undefined;
  return usesPytest ? PYTEST : "tests: python3 -m unittest";
}

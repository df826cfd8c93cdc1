import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SettingsPatch, SettingsQuestion } from "@heddle/agent/settings";
import { expect, test } from "vitest";
import { chooseEnvelope, type EnvelopeChoice } from "./envelopes.ts";

interface Words {
  readonly file?: string;
  readonly thread?: string;
  readonly flag?: string;
  readonly request?: string;
}

interface Fixture extends AsyncDisposable {
  choose(values: SettingsPatch, words?: Words): Promise<EnvelopeChoice>;
}

async function openFixture(): Promise<Fixture> {
  const home = await mkdtemp(join(tmpdir(), "heddle-settings-"));
  await mkdir(join(home, "envelopes"));
  await writeFile(join(home, "envelopes", "free.yaml"), "extends: full\n");
  await writeFile(join(home, "envelopes", "docs.yaml"), "extends: edit\nwrite: [docs]\n");
  return {
    choose(values, { file, thread, flag, request } = {}) {
      const layers: SettingsQuestion = {
        config: [{ source: "file", values: { ceiling: file } }],
        stored: { turn: {}, thread: { ceiling: thread }, workspace: undefined, hasClientTools: false },
        asked: [
          { source: "flag", values: { ceiling: flag } },
          { source: "request", values: { ceiling: request } },
        ],
      };
      return chooseEnvelope(values, layers, { HEDDLE_HOME: home });
    },
    [Symbol.asyncDispose]: () => rm(home, { recursive: true }),
  };
}

test("an envelope has the sandbox mode that says the same to clients which know nothing else", async () => {
  await using fixture = await openFixture();
  const modes = await Promise.all(
    ["explore", "edit", "full", "free", "docs", "of-the-project"].map(async (envelope) => [
      envelope,
      (await fixture.choose({ envelope })).sandboxMode,
    ]),
  );
  expect(Object.fromEntries(modes)).toEqual({
    explore: "read-only",
    edit: "workspace-write",
    full: "danger-full-access",
    free: "danger-full-access",
    docs: "workspace-write",
    "of-the-project": "workspace-write",
  });
  expect(await fixture.choose({})).toEqual({});
});

test("the ceiling: the owner's, the thread's own where it is lower, and a client can only lower it", async () => {
  await using fixture = await openFixture();
  const ceiling = async (words: Words) => (await fixture.choose({}, words)).ceiling;
  expect(await ceiling({ file: "workspace-write" })).toBe("edit");
  expect(await ceiling({ file: "edit", thread: "explore" })).toBe("explore");
  // The owner has lowered it since.
  expect(await ceiling({ file: "explore", thread: "edit" })).toBe("explore");
  expect(await ceiling({ file: "edit", request: "docs" })).toBe("docs");
  expect(await ceiling({ file: "explore", flag: "full" })).toBe("full");
  const refused = expect.objectContaining({ code: "ceiling.exceeded" });
  await expect(ceiling({ file: "explore", request: "edit" })).rejects.toEqual(refused);
  await expect(ceiling({ thread: "explore", request: "edit" })).rejects.toEqual(refused);
  await expect(ceiling({ thread: "docs", request: "edit" })).rejects.toEqual(refused);
  await expect(ceiling({ request: "nothing" })).rejects.toMatchObject({ code: "envelope.unknown" });
});

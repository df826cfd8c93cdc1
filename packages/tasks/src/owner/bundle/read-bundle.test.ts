import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { unpackBundle } from "./read-bundle.ts";

test("14.11: a file that is not a bundle, or does not exist, is refused in plain words", async () => {
  const folder = await mkdtemp(join(tmpdir(), "heddle-bundle-"));
  await using _folder = { [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
  const refusal = (name: string): Promise<unknown> =>
    unpackBundle(join(folder, name), join(folder, "home"), AbortSignal.timeout(60_000)).catch(
      (error: unknown) => error,
    );
  await writeFile(join(folder, "other"), "{}\n");
  const trusted = "this bundle cannot be trusted:";
  expect(await refusal("other")).toMatchObject({
    code: "store.damaged",
    message: `${trusted} it is not a bundle, or it is cut off or damaged`,
  });
  expect(await refusal("gone")).toMatchObject({ message: `${trusted} it cannot be read (it does not exist)` });
});

import { createPrivateKey, createPublicKey } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { loadOrMakeSigner, loadPublicKey, loadVerifier, verifierOf } from "./keys.ts";

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

test("the public half is written as any other program writes it, and names the key for good", () => {
  const folder = mkdtempSync(join(tmpdir(), "heddle-keys-"));
  folders.push(folder);
  const signer = loadOrMakeSigner(folder);
  const standard = createPublicKey(createPrivateKey(readFileSync(join(folder, "journal.key"), "utf8")))
    .export({ type: "spki", format: "pem" })
    .toString();
  expect(readFileSync(join(folder, "journal.pub"), "utf8")).toBe(standard);
  expect(loadPublicKey(folder)).toBe(standard);
  for (const verifier of [loadVerifier(folder), verifierOf(standard)]) {
    expect(verifier?.keyId).toBe(signer.keyId);
    expect(verifier?.verify("said", signer.sign("said"))).toBe(true);
    expect(verifier?.verify("not said", signer.sign("said"))).toBe(false);
  }
});

import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openWorkspace } from "./workspace.ts";

// To root every folder is open.
test.skipIf(process.getuid?.() === 0)("14: -C into a folder that this user cannot read is refused", async () => {
  const folder = mkdtempSync(join(tmpdir(), "heddle-closed-"));
  onTestFinished(() => {
    chmodSync(folder, 0o700);
    rmSync(folder, { recursive: true });
  });
  chmodSync(folder, 0o000);
  await expect(openWorkspace(folder, "/")).rejects.toMatchObject({
    code: "workspace.missing",
    message: expect.stringContaining("cannot be read by this user; run chmod u+rx on it"),
  });
});

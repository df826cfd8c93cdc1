import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { requireAllowedWorkspace } from "./allowed-roots.ts";

const folder = mkdtempSync(path.join(tmpdir(), "heddle-roots-"));
afterAll(() => rmSync(folder, { recursive: true }));
const at = (name: string): string => path.join(folder, name);
for (const name of ["root/inside", "root-evil", "elsewhere"]) mkdirSync(at(name), { recursive: true });
symlinkSync(at("elsewhere"), at("root/link"));

test("122: only folders inside the allowed ones may be worked in", () => {
  const allows = (workspace: string, roots?: readonly string[]): boolean => {
    try {
      requireAllowedWorkspace(workspace, roots);
      return true;
    } catch (error) {
      expect(error).toMatchObject({ code: "policy.denied" });
      return false;
    }
  };
  expect(allows(at("elsewhere"))).toBe(true);
  expect(allows(at("root"), [at("root")])).toBe(true);
  expect(allows(at("root/inside"), [at("root")])).toBe(true);
  expect(allows(at("root-evil"), [at("root")])).toBe(false);
  expect(allows(at("root/../elsewhere"), [at("root")])).toBe(false);
  expect(allows(at("root/link"), [at("root")])).toBe(false);
  expect(allows(at("root"), [])).toBe(false);
});

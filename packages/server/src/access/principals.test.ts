import { expect, test } from "vitest";
import { isRole, ROLES, SCOPES, scopeAllows } from "./principals.ts";

test("a viewer reads, a user works, an owner does everything", () => {
  const table = ROLES.map((role) => [role, SCOPES.filter((scope) => scopeAllows(role, scope))]);
  expect(table).toEqual([
    ["owner", ["read", "write", "admin"]],
    ["user", ["read", "write"]],
    ["viewer", ["read"]],
  ]);
});

test("a word that is no role is none", () => {
  expect(["owner", "viewer", "root", ""].map(isRole)).toEqual([true, true, false, false]);
});

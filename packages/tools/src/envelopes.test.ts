import { Envelope } from "@heddle/protocol";
import { expect, test } from "vitest";
import { envelopeFor, envelopeHash } from "./envelopes.ts";

const options = {
  workspace: "/w",
  writableRoots: ["/x", "/w"],
  networkAccess: false,
  approval: "never",
  masked: ["/home/me/.heddle"],
} as const;

test("read-only explores: no write tool, no root to write, no network", () => {
  const envelope = envelopeFor({ ...options, mode: "read-only" });
  expect(Envelope.parse(envelope)).toMatchObject({
    id: "explore",
    writeRoots: [],
    network: "none",
    sandbox: "required",
  });
  expect(envelope.effects).toEqual(["read", "exec"]);
  expect(envelope.tools).not.toEqual(expect.arrayContaining(["apply_patch"]));
  for (const name of ["apply_patch", "edit", "write"]) expect(envelope.tools).not.toContain(name);
});

test("workspace-write edits inside the workspace and the named folders, once each", () => {
  const envelope = envelopeFor({ ...options, mode: "workspace-write", networkAccess: true });
  expect(envelope).toMatchObject({ id: "edit", writeRoots: ["/w", "/x"], network: "all", sandbox: "required" });
  expect(envelope.effects).toContain("net");
  expect(envelope.tools).toContain("apply_patch");
});

test("danger-full-access says that nothing holds it", () => {
  expect(envelopeFor({ ...options, mode: "danger-full-access" })).toMatchObject({
    id: "full",
    writeRoots: ["/"],
    network: "all",
    sandbox: "off",
    masked: ["/home/me/.heddle"],
  });
});

test("the hash follows the content and not the order of keys", () => {
  const envelope = envelopeFor({ ...options, mode: "workspace-write" });
  const reordered = Object.fromEntries(Object.entries(envelope).reverse());
  expect(envelopeHash(envelope)).toMatch(/^[0-9a-f]{64}$/);
  expect(envelopeHash(Envelope.parse(reordered))).toBe(envelopeHash(envelope));
  expect(envelopeHash({ ...envelope, network: "all" })).not.toBe(envelopeHash(envelope));
});

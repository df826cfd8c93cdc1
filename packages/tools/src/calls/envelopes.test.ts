import { Envelope, McpServerConfig } from "@heddle/protocol";
import { expect, test } from "vitest";
import { envelopeFor, envelopeHash, narrowEnvelope } from "./envelopes.ts";

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

const stdioServer = McpServerConfig.parse({ name: "wiki", command: "wiki-server" });
const httpServer = McpServerConfig.parse({ name: "my.tracker", url: "https://tracker.test/mcp" });

test("the tools of a configured MCP server exist by their pattern; only one that reaches out brings the net effect", () => {
  const near = envelopeFor({ ...options, mode: "read-only", mcpServers: [stdioServer] });
  expect(near.tools).toContain("mcp.wiki.*");
  expect(near).toMatchObject({ effects: ["read", "exec"], network: "none" });
  const far = envelopeFor({ ...options, mode: "read-only", mcpServers: [stdioServer, httpServer] });
  expect(far.tools.at(-1)).toMatch(/^mcp\.my_tracker-[0-9a-f]{8}\.\*$/);
  // Commands still have no network.
  expect(far).toMatchObject({ effects: ["read", "exec", "net"], network: "none" });
});

test("an envelope can be narrowed to some tools and never widened", () => {
  const envelope = envelopeFor({ ...options, mode: "read-only", mcpServers: [stdioServer] });
  const allowed = ["read", "apply_patch", "mcp__wiki__search", "mcp.other.search", "mcp.*", "*"];
  expect(narrowEnvelope(envelope, allowed).tools).toEqual(["read", "mcp.wiki.search"]);
  expect(narrowEnvelope(envelope, ["mcp.wiki.*"]).tools).toEqual(["mcp.wiki.*"]);
  expect(narrowEnvelope(envelope, []).tools).toEqual([]);
});

/**
 * The names of MCP tools: canonical `mcp.<server>.<tool>` for envelopes and records, `mcp__<server>__<tool>` for models.
 * A model's name fits every provider (letters, digits, `_`, `-`, at most 64), is the same whatever order servers answer
 * in, and cannot be that of a built-in tool, because none of those starts with `mcp__`.
 */
import { createHash } from "node:crypto";
import { visibleLine } from "@heddle/protocol";

const MAX_OFFERED_CHARS = 64;
const HASH_CHARS = 8;

/** No dots in the server's part, so that `mcp.a.*` can never cover a tool of another server. */
export function canonicalServer(server: string): string {
  const clean = cleaned(server);
  return clean === server ? clean : `${clean}-${shortHash(server)}`;
}

export function canonicalName(server: string, tool: string): string {
  return `mcp.${canonicalServer(server)}.${visibleLine(tool)}`;
}

/** What an envelope names to let all tools of a server in. */
export function serverPattern(server: string): string {
  return `mcp.${canonicalServer(server)}.*`;
}

/** A tool of one server by its canonical name, or all of them. */
export function isServerName(name: string): boolean {
  return /^mcp\.[A-Za-z0-9_-]+\.(\*|[^*]+)$/.test(name);
}

/** The canonical form of a model's name where it can be derived; any other name as it is. */
export function asCanonical(name: string): string {
  const [, server, tool] = /^mcp__(.+?)__(.+)$/.exec(name) ?? [];
  return server === undefined || tool === undefined ? name : `mcp.${server}.${tool}`;
}

/** An exact name, or a prefix when it ends in `*`. */
export function matchesName(pattern: string, name: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

/** One name for each, in their order. Names that would be the same or too long all get a mark of what they stand for. */
export function offeredNames(tools: readonly { readonly server: string; readonly tool: string }[]): string[] {
  const plain = tools.map(({ server, tool }) => `mcp__${cleaned(server)}__${cleaned(tool)}`);
  const uses = new Map<string, number>();
  for (const name of plain) uses.set(name, (uses.get(name) ?? 0) + 1);
  return tools.map(({ server, tool }, index) => {
    const name = plain[index] ?? "";
    if (name.length <= MAX_OFFERED_CHARS && uses.get(name) === 1) return name;
    const room = MAX_OFFERED_CHARS - HASH_CHARS - 1;
    return `${name.slice(0, room)}_${shortHash(`${server}\0${tool}`)}`;
  });
}

function cleaned(name: string): string {
  const clean = name.replace(/[^A-Za-z0-9_-]+/gu, "_");
  return clean === "" ? "_" : clean;
}

function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, HASH_CHARS);
}

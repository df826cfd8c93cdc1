/**
 * Sandbox requests of a shell call, in the formats models know: Codex's `sandbox_permissions` with `justification`, and
 * the switch of Claude Code. Parsed by hand, because almost no call has one.
 */
import { HeddleError, type Permissions } from "@heddle/protocol";
import type { OfferedTool } from "../calls/registry.ts";
import type { RequestedHop } from "../calls/tool.ts";

type Args = Readonly<Record<string, unknown>>;

export function shellRequest(args: Args): RequestedHop | undefined {
  const reason = typeof args["justification"] === "string" ? args["justification"] : undefined;
  if (args["sandbox_permissions"] === "with_additional_permissions") {
    const permissions = permissionsFrom(args["additional_permissions"]);
    return { request: { kind: "wider", permissions }, reason, scope: "call" };
  }
  const wantsOut =
    args["sandbox_permissions"] === "require_escalated" ||
    args["with_escalated_permissions"] === true ||
    args["dangerouslyDisableSandbox"] === true;
  return wantsOut ? { request: { kind: "outside" }, reason, scope: "call" } : undefined;
}

/** `{ network: { enabled }, file_system: { read, write } }`. */
export function permissionsFrom(given: unknown): Permissions {
  const { network, file_system: files } = asRecord(given);
  const { read, write } = asRecord(files);
  const permissions = { read: paths(read), write: paths(write), network: asRecord(network)["enabled"] === true };
  if (permissions.read.length + permissions.write.length === 0 && !permissions.network) {
    throw new HeddleError(
      "tool.invalid-arguments",
      'name what is needed: {"network": {"enabled": true}} or {"file_system": {"read": [PATH], "write": [FOLDER]}}',
    );
  }
  return permissions;
}

function asRecord(value: unknown): Args {
  return typeof value === "object" && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}

function paths(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((path) => typeof path === "string") : [];
}

/** Offered where a user can be asked. */
const OFFERED: Args = {
  sandbox_permissions: {
    type: "string",
    enum: ["use_default", "with_additional_permissions", "require_escalated"],
    description: "require_escalated runs this command outside the sandbox; the user is asked",
  },
  justification: { type: "string", description: "The question to the user" },
  additional_permissions: {
    type: "object",
    description: "With with_additional_permissions: what this command needs in the sandbox",
    properties: {
      network: { type: "object", properties: { enabled: { type: "boolean" } } },
      file_system: { type: "object", properties: { write: { type: "array", items: { type: "string" } } } },
    },
  },
};

/** The same offer with the arguments for leaving the sandbox. */
export function withSandboxRequests(offer: OfferedTool): OfferedTool {
  const { parameters = {} } = offer;
  return { ...offer, parameters: { ...parameters, properties: { ...asRecord(parameters["properties"]), ...OFFERED } } };
}

/**
 * `request_permissions`: asks the user for more permissions in the sandbox, for the turn or the thread. The answer is a
 * hop.
 */
import { textTool } from "../calls/call-item.ts";
import { permissionsFrom } from "../commands/shell-request.ts";
import { z } from "./schema.ts";

const Paths = z.optional(z.array(z.string()).check(z.maxLength(20)));
const Input = z.object({
  reason: z.optional(z.string().check(z.maxLength(2000), z.describe("Shown to the user"))),
  permissions: z.object({
    network: z.optional(z.object({ enabled: z.boolean() })),
    file_system: z.optional(z.object({ read: Paths, write: Paths })),
  }),
});
type Input = z.infer<typeof Input>;

export const requestPermissions = textTool<Input>({
  name: "request_permissions",
  description:
    "Asks the user for more permissions in the sandbox: folders to write, or the network. The commands that follow have what is granted.",
  input: Input,
  // Those of the commands it is for, so that it is not called in parallel with others.
  effects: ["read", "exec"],
  deadlineMs: () => 5000,
  requestedHop: (args) => ({
    request: { kind: "wider", permissions: permissionsFrom(args.permissions) },
    reason: args.reason,
    scope: "answer",
  }),
  question: (args, { callId, itemId, cwd }) => ({
    kind: "permissions",
    callId,
    itemId,
    cwd,
    permissions: permissionsFrom(args.permissions),
  }),
  async run(_args, { granted }) {
    if (granted === undefined) return "These permissions are already granted.";
    const { scope, request } = granted;
    const { read, write, network } =
      request.kind === "wider" ? request.permissions : { read: [], write: ["/"], network: true };
    const answer = {
      permissions: {
        ...(network ? { network: { enabled: true } } : {}),
        ...(read.length + write.length === 0 ? {} : { file_system: { read, write } }),
      },
      scope: scope === "thread" ? "session" : "turn",
    };
    return JSON.stringify(answer);
  },
});

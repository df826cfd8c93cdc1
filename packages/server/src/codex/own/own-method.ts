/** A method of Heddle's own, beside those of Codex: what it takes, and what it does. Unknown fields are refused. */
import { PLAIN } from "@heddle/protocol";
import type { z } from "zod";
import type { Call } from "../../rpc/call.ts";
import { RPC, RpcError, type Reply } from "../../rpc/peer.ts";

export type OwnMethod = (params: unknown, call: Call) => Promise<Reply>;

export function ownMethod<S extends z.ZodType>(
  schema: S,
  run: (params: z.infer<S>, call: Call) => Promise<Reply>,
): OwnMethod {
  return async (params, call) => {
    const parsed = schema.safeParse(params ?? {}, PLAIN);
    if (parsed.success) return run(parsed.data, call);
    const problems = parsed.error.issues.map(({ path, message }) =>
      [path.join("."), message].filter(Boolean).join(": "),
    );
    throw new RpcError(RPC.invalidParams, `invalid params: ${problems.join("; ")}`, { code: "usage.invalid" });
  };
}

/** One row of a table of methods: how params are read, and who carries the call out. */
import { invalidParams } from "@heddle/dialects/codex-app-server";
import type { z } from "zod";
import type { Call, Handler } from "./call.ts";
import { RPC, RpcError, type Reply } from "./peer.ts";

export interface Method {
  /** What it takes, for those who describe the server. */
  readonly params: z.ZodType;
  /** Throws for params that do not fit; what comes back carries the call out. */
  prepare(params: unknown): (call: Call) => Promise<Reply>;
}

export function row<Schema extends z.ZodType>(schema: Schema, handle: Handler<z.infer<Schema>>): Method {
  return {
    params: schema,
    prepare(params) {
      const parsed = schema.safeParse(params ?? {}, { reportInput: true });
      if (!parsed.success) throw invalid(invalidParams(parsed.error.issues));
      return (call) => handle(parsed.data, call);
    },
  };
}

export function invalid(why: string): RpcError {
  return new RpcError(RPC.invalidRequest, `Invalid request: ${why}`);
}

/** Rights beyond the envelope as Codex sends them: what is asked for, and what a client grants. */
import { z } from "zod";
import type { ApprovalAnswer, Permissions } from "@heddle/protocol";

export interface CodexPermissions {
  readonly network: { readonly enabled: boolean } | null;
  readonly fileSystem: {
    readonly read: readonly string[] | null;
    readonly write: readonly string[] | null;
    readonly entries: readonly {
      readonly path: { readonly type: "path"; readonly path: string };
      readonly access: string;
    }[];
  } | null;
}

export function codexPermissions({ read, write, network }: Permissions): CodexPermissions {
  const entry = (access: string) => (path: string) => ({ path: { type: "path" as const, path }, access });
  return {
    network: network ? { enabled: true } : null,
    fileSystem:
      read.length + write.length === 0
        ? null
        : {
            read: read.length === 0 ? null : read,
            write: write.length === 0 ? null : write,
            entries: [...read.map(entry("read")), ...write.map(entry("write"))],
          },
  };
}

const Paths = z.array(z.string()).nullish();
const Granted = z.object({
  permissions: z.object({
    network: z.object({ enabled: z.boolean().nullish() }).nullish(),
    fileSystem: z
      .object({
        read: Paths,
        write: Paths,
        entries: z
          .array(z.object({ path: z.object({ type: z.string(), path: z.string().optional() }), access: z.string() }))
          .nullish(),
      })
      .nullish(),
  }),
  scope: z.enum(["turn", "session"]).default("turn"),
});

/** An answer that grants nothing, or is unreadable, declines. */
export function grantFrom(result: unknown): ApprovalAnswer {
  const parsed = Granted.safeParse(result);
  if (!parsed.success) return { decision: "decline" };
  const { permissions, scope } = parsed.data;
  const { read, write, entries } = permissions.fileSystem ?? {};
  const listed = (access: string, paths: readonly string[] | null | undefined): string[] => {
    const named = (entries ?? []).flatMap((entry) =>
      entry.access === access && entry.path.path !== undefined ? [entry.path.path] : [],
    );
    return [...new Set([...(paths ?? []), ...named])];
  };
  const granted: Permissions = {
    read: listed("read", read),
    write: listed("write", write),
    network: permissions.network?.enabled === true,
  };
  const isNothing = granted.read.length + granted.write.length === 0 && !granted.network;
  if (isNothing) return { decision: "decline" };
  return { decision: scope === "session" ? "acceptForThread" : "accept", granted };
}

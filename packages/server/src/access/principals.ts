/**
 * Who calls, and what they may do: the same for every door. A viewer reads, a user works, an owner also decides who else
 * may come in. Whoever opens a private socket, or holds the standard input of the server, is its owner.
 */
import { OWNER, principalName, type Author } from "@heddle/protocol";

export const ROLES = ["owner", "user", "viewer"] as const;
export type Role = (typeof ROLES)[number];

/** `read` looks, `write` starts, answers and changes threads, `admin` reaches what is not a thread's. */
export const SCOPES = ["read", "write", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

export interface Principal {
  /** As it was given when the token was made; it goes on record as who asked. */
  readonly name: string;
  readonly role: Role;
  /** The login it came with, where a browser calls for it. */
  readonly browser?: string;
  /** When its token was made: one that is made again under the same name is another. Absent: the owner of the home. */
  readonly since?: number;
}

/** Whoever can open a file or a stream that only the owner can open. */
export const LOCAL_OWNER: Principal = { name: principalName(OWNER), role: "owner" };

/** As whom a principal goes on record. */
export function authorOf({ name }: Principal): Author {
  return `user:${name}`;
}

const ALLOWED: Readonly<Record<Role, ReadonlySet<Scope>>> = {
  owner: new Set(["read", "write", "admin"]),
  user: new Set(["read", "write"]),
  viewer: new Set(["read"]),
};

export function scopeAllows(role: Role, scope: Scope): boolean {
  return ALLOWED[role].has(scope);
}

export function isRole(word: string): word is Role {
  return (ROLES as readonly string[]).includes(word);
}

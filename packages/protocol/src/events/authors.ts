/**
 * Who caused an event; taken from the channel it came through, never from its payload. A user is named by the principal:
 * the name of its token, or `owner` for the user who runs Heddle on this machine. Names of tokens have no colon, so
 * `door:…` names callers of a door that are not principals.
 */
export type UserAuthor = `user:${string}`;
export type Author = UserAuthor | "system" | `agent:${string}` | `policy:${string}`;

/** In every call that changes something. */
export interface By {
  readonly by: Author;
}

/** Has access to a file, a socket or a terminal that only the owner can open. */
export const OWNER = "user:owner" satisfies Author;
/** Of events from before the names of users were stored. */
export const UNNAMED = "user:unnamed" satisfies Author;
/** Has write access to the folder of the inbox. */
export const INBOX = "user:door:inbox" satisfies Author;

/** Names of principals that no token may have. */
export const OWN_NAMES: ReadonlySet<string> = new Set([principalName(OWNER), principalName(UNNAMED)]);

export function isUser(author: Author): author is UserAuthor {
  return author.startsWith("user:");
}

export function principalName(author: UserAuthor): string {
  return author.slice("user:".length);
}

/** An author as it is stored; `user` in events that do not name their user. */
export function readAuthor(stored: string): Author | undefined {
  if (stored === "user") return UNNAMED;
  return isAuthor(stored) ? stored : undefined;
}

function isAuthor(text: string): text is Author {
  return text === "system" || /^(user|agent|policy):/.test(text);
}

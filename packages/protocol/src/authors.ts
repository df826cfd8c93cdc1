/**
 * Who caused an event; taken from the channel it came through, never from its payload. Of a user the name of the
 * principal: the name of its token, `owner` for whoever runs Heddle on this machine. A name of a token has no colon, so
 * `door:…` names those who come through a door without being a principal.
 */
export type UserAuthor = `user:${string}`;
export type Author = UserAuthor | "system" | `agent:${string}` | `policy:${string}`;

/** What every call that changes something says: who asks for it. */
export interface By {
  readonly by: Author;
}

/** Whoever can open a file, a socket or a terminal that only the owner can open. */
export const OWNER = "user:owner" satisfies Author;
/** Of events that were stored before the names of users were. */
export const UNNAMED = "user:unnamed" satisfies Author;
/** Whoever may write into the folder of the inbox. */
export const INBOX = "user:door:inbox" satisfies Author;

/** Names of principals that no token may have. */
export const OWN_NAMES: ReadonlySet<string> = new Set([principalName(OWNER), principalName(UNNAMED)]);

export function isUser(author: Author): author is UserAuthor {
  return author.startsWith("user:");
}

export function principalName(author: UserAuthor): string {
  return author.slice("user:".length);
}

/** An author as it is stored. Stored bytes stay: `user` is how events without a name of their user say it. */
export function readAuthor(stored: string): Author | undefined {
  if (stored === "user") return UNNAMED;
  return isAuthor(stored) ? stored : undefined;
}

function isAuthor(text: string): text is Author {
  return text === "system" || /^(user|agent|policy):/.test(text);
}

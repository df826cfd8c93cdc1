import type { MessageKind, MessageOutcome } from "@heddle/protocol";

/** Where a message stands; what it says is in its events. */
export interface MessageRow {
  readonly id: string;
  readonly kind: MessageKind;
  readonly author: string;
  /** undefined: a user sent it. */
  readonly from: string | undefined;
  readonly to: string;
  /** In the thread of its sender; undefined: a user's, or its sender was deleted. */
  readonly sentVersion: number | undefined;
  /** In the thread of its receiver; undefined: not delivered. */
  readonly receivedVersion: number | undefined;
  readonly receivedPosition: number | undefined;
  /** The turn whose agent was told of it. */
  readonly givenTurn: string | undefined;
  readonly answerBy: number | undefined;
  readonly settled: { readonly outcome: MessageOutcome; readonly stream: string; readonly version: number } | undefined;
  /** When it was sent, or delivered. */
  readonly at: number;
}

export interface MessageQueries {
  get(id: string): Promise<MessageRow | undefined>;
  /** Delivered, and no agent was told, in the order in which they came. */
  waiting(threadId: string, options: { readonly limit: number }): Promise<readonly MessageRow[]>;
  countWaiting(threadId: string): Promise<number>;
  /** Threads with such messages. */
  waitingThreads(options: { readonly limit: number }): Promise<readonly string[]>;
  /** What waits for somebody: sent and not delivered, or a question without an end; oldest first. */
  loose(options: { readonly limit: number }): Promise<readonly MessageRow[]>;
  /** Questions without an end that the agent of a thread has asked. */
  openAsks(from: string): Promise<readonly MessageRow[]>;
  /** How many a sender has sent since then: the agent of a thread, or a user by the name of the author. */
  countSince(sender: { readonly thread: string } | { readonly author: string }, since: number): Promise<number>;
  /** To a thread or from it, newest first. */
  of(threadId: string, options: { readonly limit: number }): Promise<readonly MessageRow[]>;
}

/** How a peer and a transport meet: whole messages as text, nothing of their meaning. */

export interface Channel {
  /** Where the messages come from, for the record: `stdio`, `unix`, `websocket`. */
  readonly name: string;
  /** Called once; nothing is delivered before. */
  open(listener: ChannelListener): void;
  /** Hands one message over. False: no room for more until `onDrain`; what was handed over will still be sent. */
  send(text: string): boolean;
  /** Lets what was handed over go out (within a deadline), then ends the connection. */
  close(): void;
}

export interface ChannelListener {
  onMessage(text: string): void;
  /** More than MAX_MESSAGE_BYTES in one message; nothing of it was kept. What comes after it may still be good. */
  onTooLong(): void;
  onDrain(): void;
  /** The client has ended its input, and may still wait for answers. */
  onEnd(): void;
  /** Called once: nothing more will come or go. */
  onClose(): void;
}

/** Pictures come inside messages; more than this is no message of any client. */
export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/** How long a reader has to take what is left when its connection is closed. */
export const CLOSE_GRACE_MS = 2_000;

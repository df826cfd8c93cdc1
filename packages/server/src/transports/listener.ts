/** What listens for clients, and how it ends. */
import type { Channel } from "../rpc/channel.ts";

export interface Listener extends AsyncDisposable {
  /** Where clients find it. */
  readonly address: string;
}

export type OnChannel = (channel: Channel) => void;

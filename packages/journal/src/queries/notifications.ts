/** Questions about notifications, answered from projections. */

export interface NotificationRow {
  readonly id: string;
  readonly sink: string;
  /** TASK_VERIFIED … */
  readonly event: string;
  readonly taskId: string | undefined;
  /** Of the event it tells of. */
  readonly position: number;
  readonly state: "queued" | "delivered" | "dead";
  readonly tries: number;
  readonly nextAt: number | undefined;
  /** How the last try went. */
  readonly message: string | undefined;
  readonly payload: Readonly<Record<string, unknown>>;
  /** Last put into the queue: when it happened, or when somebody asked for it again. */
  readonly queuedAt: number;
  readonly updatedAt: number;
}

export interface NotificationCount {
  readonly sink: string;
  readonly state: NotificationRow["state"];
  readonly count: number;
}

export interface NotificationQueries {
  get(id: string): Promise<NotificationRow | undefined>;
  /** Newest first. */
  page(wish: {
    readonly sink?: string;
    readonly state?: NotificationRow["state"];
    readonly taskId?: string;
    readonly after?: string;
    readonly limit: number;
  }): Promise<readonly NotificationRow[]>;
  /**
   * What a sink may be sent next: `head`, the oldest that waits and was tried fewer than `tries` times, and `late`, of the
   * others the one whose time comes first.
   */
  next(
    sink: string,
    tries: number,
  ): Promise<{ readonly head: NotificationRow | undefined; readonly late: NotificationRow | undefined }>;
  /** How many there are of each sink in each state. */
  counts(): Promise<readonly NotificationCount[]>;
  /** How far the sink has read; undefined: it is new. */
  cursor(sink: string): Promise<number | undefined>;
}

export interface NotificationRow {
  readonly id: string;
  readonly sink: string;
  /** TASK_VERIFIED … */
  readonly event: string;
  readonly taskId: string | undefined;
  readonly position: number;
  readonly state: "queued" | "delivered" | "dead";
  readonly tries: number;
  readonly nextAt: number | undefined;
  readonly message: string | undefined;
  readonly payload: Readonly<Record<string, unknown>>;
  /** Last queued: when it happened, or when it was asked for again. */
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
  page(query: {
    readonly sink?: string;
    readonly state?: NotificationRow["state"];
    readonly taskId?: string;
    readonly after?: string;
    readonly limit: number;
  }): Promise<readonly NotificationRow[]>;
  /**
   * What a sink is sent next: `head`, the oldest that was tried fewer than `tries` times, and `late`, of the others the
   * one that is due first.
   */
  next(
    sink: string,
    tries: number,
  ): Promise<{ readonly head: NotificationRow | undefined; readonly late: NotificationRow | undefined }>;
  counts(): Promise<readonly NotificationCount[]>;
  /** How far the sink has read; undefined: it is new. */
  cursor(sink: string): Promise<number | undefined>;
}

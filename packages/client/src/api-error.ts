/** A refusal of the server, by its code: programs decide by the code, people read the message. */
export class HeddleApiError extends Error {
  override readonly name = "HeddleApiError";
  readonly code: string;
  /** HTTP status; 0 when no answer came. */
  readonly status: number;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    code: string,
    message: string,
    more: {
      readonly status?: number;
      readonly details?: Readonly<Record<string, unknown>>;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, more.cause === undefined ? {} : { cause: more.cause });
    this.code = code;
    this.status = more.status ?? 0;
    this.details = more.details ?? {};
  }

  /** Asking again later may help: the server was away, busy or stopping. */
  get isTransient(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** Notifications about tasks, and their sinks. */
import type { Call, Http } from "./http.ts";
import type { Notification, NotificationPage, NotificationsQuery, SinkList, SinkTest } from "./types.ts";

export class NotificationClient {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Newest first; `state: "dead"` is what could not be delivered. */
  list(query: NotificationsQuery = {}, call?: Call): Promise<NotificationPage> {
    return this.#http.json("GET", "api/notifications", { ...call, query });
  }

  redeliver(notificationId: string, call?: Call): Promise<Notification> {
    return this.#http.json("POST", `api/notifications/${encodeURIComponent(notificationId)}/redeliver`, {
      ...call,
      body: {},
    });
  }

  sinks(call?: Call): Promise<SinkList> {
    return this.#http.json("GET", "api/sinks", call);
  }

  /** Sends a sink one test, now; nothing is stored. */
  test(sink: string, call?: Call): Promise<SinkTest> {
    return this.#http.json("POST", `api/sinks/${encodeURIComponent(sink)}/test`, { ...call, body: {} });
  }
}

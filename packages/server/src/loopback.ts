/** An address of this machine alone. */
export function isLoopback(host: string): boolean {
  return host === "::1" || host.startsWith("127.");
}

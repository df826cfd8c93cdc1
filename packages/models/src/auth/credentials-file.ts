/** Where logins are kept in Heddle's home, and how large that may be. */
export const CREDENTIALS_FILE = "credentials.json";
export const MAX_CREDENTIALS_BYTES = 4 * 1024 * 1024;

/** The `code` of an error of the system or of the HTTP client, such as `ENOENT`; undefined where there is none. */
export const errorCodeOf = (error: unknown): unknown =>
  typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined

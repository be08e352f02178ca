/** Whether a caught value is a system error with this code, such as `ENOENT`. Errors of another realm count too. */
export function hasErrorCode(error: unknown, code: string): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === code
}

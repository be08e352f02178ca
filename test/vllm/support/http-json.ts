/** Sends JSON and reads JSON, with a deadline. @throws Error on any answer but 2xx */
export const httpJson = async (
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  url: string,
  body?: unknown,
  timeoutMs = 60_000,
): Promise<unknown> => {
  const response = await fetch(url, {
    method,
    ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(timeoutMs),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${url} was answered ${response.status}: ${text.slice(0, 500)}`)
  return text === '' ? undefined : JSON.parse(text)
}

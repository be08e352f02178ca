import { isEventStream, isJson } from '../openai/answer-reader.ts'

/** The form of an engine's answer by its head. Undefined: an error, a compressed one, or of another type. */
export const answerFormOf = (
  status: number,
  header: (name: string) => readonly string[],
): 'stream' | 'json' | undefined => {
  const [contentType = '', ...others] = header('content-type')
  const isPlain = header('content-encoding').every((value) => value === '' || value === 'identity')
  if (status !== 200 || others.length > 0 || !isPlain) return undefined
  if (isEventStream(contentType)) return 'stream'
  return isJson(contentType) ? 'json' : undefined
}

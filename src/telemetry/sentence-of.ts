/** The messages of an error and its causes, without stacks. */
export const sentenceOf = (error: unknown): string => {
  const messages: string[] = []
  for (let at = error; at instanceof Error; at = at.cause) messages.push(at.message || at.name)
  return messages.length === 0 ? String(error) : messages.join(': ')
}

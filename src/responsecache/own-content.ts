/** Members whose text says where content is to be fetched from, unless it is a `data:` URL. */
const addresses: ReadonlySet<string> = new Set(['url', 'image_url', 'video_url', 'audio_url', 'file_url'])

/** Members that name what an engine keeps. */
const references: ReadonlySet<string> = new Set(['file_id', 'vector_store_id', 'container_id'])

/**
 * Whether messages hold all that they consist of. A picture that is fetched from an address, or a file that the engine keeps, can change
 * without the request changing.
 */
export const holdsItsContent = (value: unknown): boolean => {
  if (Array.isArray(value)) return value.every(holdsItsContent)
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([name, member]: [string, unknown]) =>
    typeof member === 'string' ? isOwn(name, member) : holdsItsContent(member),
  )
}

const isOwn = (name: string, text: string): boolean => {
  if (references.has(name) || (name === 'type' && text === 'item_reference')) return false
  return !addresses.has(name) || text.startsWith('data:')
}

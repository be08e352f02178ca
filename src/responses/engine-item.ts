import { membersOf } from '../json/members-of.ts'
import { readJson } from '../json/read-json.ts'

/** In a text without any of these an engine can take the item as it is. */
const mayHinder = /"(?:encrypted_content|refusal|in_progress|incomplete)"|"content"\s*:\s*\[\s*\]/

/**
 * An item of a history in the form that engines take back in `input`; undefined: there is nothing in it for an engine.
 * What an engine wrote it takes back unchanged, but for what vLLM refuses or misreads: reasoning that only its author can
 * decrypt, a message of the assistant that refuses or says nothing, and one that is not complete, which it would go on
 * with instead of answering.
 */
export const toEngineItem = (json: string): string | undefined => {
  if (!mayHinder.test(json)) return json
  const item = readJson(json)
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return json
  const changed: Readonly<Record<string, unknown>> = Object.fromEntries(
    Object.entries(item).map(([name, value]) => [name, memberOf(name, value)]),
  )
  const { type, role, summary, content } = changed
  if (type === 'reasoning' && !hasParts(summary) && !hasParts(content)) return undefined
  if (role === 'assistant' && Array.isArray(content) && content.length === 0) return undefined
  return JSON.stringify(changed)
}

const memberOf = (name: string, value: unknown): unknown => {
  if (name === 'encrypted_content') return null
  if (name === 'status') return value === 'in_progress' || value === 'incomplete' ? 'completed' : value
  return name === 'content' && Array.isArray(value) ? value.map(partOf) : value
}

const partOf = (part: unknown): unknown => {
  const { type, refusal } = membersOf(part)
  return type === 'refusal' && refusal !== undefined ? { type: 'output_text', text: refusal, annotations: [] } : part
}

const hasParts = (parts: unknown): boolean => Array.isArray(parts) && parts.length > 0

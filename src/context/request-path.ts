import type { InferenceApi } from '../openai/inference-api.ts'

/** Where each API lives on an engine. */
export const inferencePaths: Readonly<Record<InferenceApi, string>> = {
  completions: '/v1/completions',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
}

export type RequestPath =
  | { readonly kind: 'inference'; readonly api: InferenceApi }
  | { readonly kind: 'contexts'; readonly query: URLSearchParams }
  /** `id` as it stands in the path, still encoded: a real id never needs encoding. */
  | { readonly kind: 'context'; readonly id: string }
  | { readonly kind: 'other' }

const apiByPath = new Map(Object.entries(inferencePaths).map(([api, path]) => [path, api as InferenceApi]))

/** Sorts a path (with its query) into what the gateway knows. */
export const parseRequestPath = (pathWithQuery: string): RequestPath => {
  const queryAt = pathWithQuery.indexOf('?')
  const path = queryAt === -1 ? pathWithQuery : pathWithQuery.slice(0, queryAt)
  const api = apiByPath.get(path)
  if (api !== undefined) return { kind: 'inference', api }
  if (path === '/v1/context')
    return { kind: 'contexts', query: new URLSearchParams(queryAt === -1 ? '' : pathWithQuery.slice(queryAt + 1)) }
  const id = /^\/v1\/context\/([^/]+)$/.exec(path)?.[1]
  return id === undefined ? { kind: 'other' } : { kind: 'context', id }
}

import { readdir } from 'node:fs/promises'
import { z } from 'zod'
import { keySchema } from '../../support/simulated-fleet/chunk-keys.ts'
import { vllmFleet } from './fleet.ts'
import { httpJson } from './http-json.ts'

const placementSchema = z.object({ instance_id: z.string(), tier: z.string(), backend: z.string() })

const keysPage = z.object({
  total: z.number(),
  keys: z.array(z.object({ key: keySchema, placements: z.array(placementSchema), num_tokens: z.number() })),
})

const lookupAnswer = z.object({
  chunks: z.number(),
  results: z.array(z.object({ key: keySchema, placements: z.array(placementSchema), token_ids: z.array(z.number()) })),
})

/** How LMCache names a chunk of KV. */
export type ChunkKey = z.infer<typeof keySchema>
export type DirectoryEntry = z.infer<typeof keysPage>['keys'][number]
export type DirectoryLookup = z.infer<typeof lookupAnswer>

/** Names of the store's files of a salt: one per chunk. */
export const l2Files = async (salt: string): Promise<readonly string[]> => {
  const names = await readdir(vllmFleet().l2Directory)
  return names.filter((name) => name.endsWith(`@${salt}.data`))
}

/** Chunks of a salt in the memory (L1) of one pod's LMCache server, as the coordinator knows them. */
export const l1Chunks = async (instanceId: string, salt: string): Promise<readonly DirectoryEntry[]> =>
  directoryEntries(salt, { tier: 'l1', instance_id: instanceId })

/** All that the coordinator's directory lists of a salt, in any tier unless filtered. */
export const directoryEntries = async (
  salt: string,
  filter: Readonly<Record<string, string>> = {},
): Promise<readonly DirectoryEntry[]> => {
  const query = new URLSearchParams({ ...filter, limit: '10000' })
  const page = keysPage.parse(await httpJson('GET', `${vllmFleet().coordinatorUrl}/directory/keys?${query.toString()}`))
  return page.keys.filter(({ key }) => key.cache_salt === salt)
}

/** What the coordinator's directory knows of chunks, named by keys or by the token ids of a whole prompt. */
export const lookUp = async (
  wanted: { readonly keys: readonly ChunkKey[] } | { readonly tokenIds: readonly number[]; readonly salt: string },
): Promise<DirectoryLookup> => {
  const fleet = vllmFleet()
  const body =
    'keys' in wanted
      ? wanted
      : { token_ids: wanted.tokenIds, cache_salt: wanted.salt, model_name: fleet.modelPath, world_size: 1 }
  return lookupAnswer.parse(await httpJson('POST', `${fleet.coordinatorUrl}/directory/lookup`, body))
}

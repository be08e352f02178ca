import { z } from 'zod'
import { defaultPoolName } from '../../config/pools.ts'
import { configSchema } from '../../config/schema.ts'

const kv = z.object({ loadBudgetMs: z.number() })

/** The options that the checks compare with, as `/config` and the configuration have them. */
const settingsSchema = z.object({
  turns: z.object({ maxBodyBytes: z.number(), leaseSeconds: z.number() }),
  sessions: z.object({
    store: z.enum(['memory', 'redis']).default('memory'),
    commandTimeoutMs: z.number(),
    implicit: z.object({ names: z.array(z.string()) }),
  }),
  admission: z.object({ messageTimeoutMs: z.number() }),
  tenant: z.object({ principalHeader: z.string().optional() }),
  kv,
  pools: z.array(z.object({ name: z.string(), kv })),
})

/** Options of the gateway. */
export type Settings = z.output<typeof settingsSchema>

/** Undefined: the value is no configuration of a gateway. */
export const readSettings = (config: unknown): Settings | undefined => settingsSchema.safeParse(config).data

export const defaultSettings = (): Settings => settingsSchema.parse(configSchema.parse({}))

/** The longest time that a load of KV may take, and the pool. */
export const longestLoad = ({ kv: own, pools }: Settings): { readonly pool: string; readonly loadBudgetMs: number } =>
  pools.reduce(
    (longest, { name, kv: { loadBudgetMs } }) =>
      loadBudgetMs > longest.loadBudgetMs ? { pool: name, loadBudgetMs } : longest,
    { pool: defaultPoolName, loadBudgetMs: own.loadBudgetMs },
  )

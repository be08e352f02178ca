import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { z } from 'zod'

export const rulesFile = fileURLToPath(new URL('../../../deploy/prometheus/rules.yaml', import.meta.url))

const alert = z.strictObject({
  alert: z.string().regex(/^ContextCache[A-Za-z]+$/),
  expr: z.string(),
  for: z.string().optional(),
  labels: z.strictObject({ severity: z.enum(['critical', 'warning']) }),
  annotations: z.strictObject({ summary: z.string(), description: z.string(), runbook: z.string() }),
})
const recording = z.strictObject({ record: z.string(), expr: z.string() })
const rules = z.strictObject({
  groups: z.array(z.strictObject({ name: z.string(), rules: z.array(z.union([alert, recording])) })),
})

/** deploy/prometheus/rules.yaml. */
export const deployedRules = rules.parse(parse(readFileSync(rulesFile, 'utf8'))).groups.flatMap(({ rules: of }) => of)

export const alerts = deployedRules.flatMap((rule) => ('alert' in rule ? [rule] : []))

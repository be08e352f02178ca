import { z } from 'zod'
import { unitsOf } from '../options/quantity.ts'
import { configSchema } from './schema.ts'

/** Members of the metadata of an option that JSON Schema does not know. */
const ownMembers = ['plainEnv', 'secret', 'unit', 'defaultText']

/**
 * The JSON Schema (draft 2020-12) of the configuration file, for editors. It knows names, types, limits and defaults,
 * not what several options must be together, which the check of the gateway finds. A duration or size may be a text
 * with a unit.
 */
export const configJsonSchema = (): object => ({
  ...z.toJSONSchema(configSchema, {
    io: 'input',
    override: ({ jsonSchema }) => {
      const { unit, default: standard, description, type, minimum, maximum } = jsonSchema
      for (const name of ownMembers) delete jsonSchema[name]
      if (unit !== 'ms' && unit !== 's' && unit !== 'bytes') return
      for (const name of Object.keys(jsonSchema)) delete jsonSchema[name]
      const text = { type: 'string', pattern: `^\\d{1,15}(${unitsOf(unit).join('|')})$` } as const
      const number = Object.fromEntries(
        Object.entries({ type, minimum, maximum }).filter(([, value]) => value !== undefined),
      )
      if (standard !== undefined) jsonSchema.default = standard
      if (description !== undefined) jsonSchema.description = description
      jsonSchema.anyOf = [number, text]
    },
  }),
  title: 'Configuration of the Context Cache Gateway',
})

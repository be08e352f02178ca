import { readFile } from 'node:fs/promises'
import { parse } from 'yaml'
import { z } from 'zod'

/** A JSON value as an OpenAPI document holds them. */
type Node = unknown

const members = (node: Node): Readonly<Record<string, Node>> =>
  typeof node === 'object' && node !== null && !Array.isArray(node) ? (node as Readonly<Record<string, Node>>) : {}

/** One response of an operation, its references resolved. */
export interface DocumentedResponse {
  readonly status: number
  /** JSON Schema by media type. */
  readonly schemas: Readonly<Record<string, Node>>
  /** JSON Schema by header name. */
  readonly headers: Readonly<Record<string, Node>>
}

export interface DocumentedOperation {
  readonly method: string
  /** With `{id}` where it stands. */
  readonly path: string
  readonly operationId: string
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: Node }[]
  /** JSON Schema of the body; undefined: none. */
  readonly requestSchema: Node
  readonly responses: readonly DocumentedResponse[]
}

export interface DocumentedInterface {
  readonly openapi: string
  readonly operations: readonly DocumentedOperation[]
  /** Every example of a header, with the header's schema. */
  readonly headerExamples: readonly { readonly schema: Node; readonly value: Node }[]
}

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']

/** Reads docs/api/openapi.yaml. Throws when a reference leads nowhere. */
export const readOpenApi = async (): Promise<DocumentedInterface> => {
  const text = await readFile(new URL('../../docs/api/openapi.yaml', import.meta.url), 'utf8')
  const document = z
    .object({ openapi: z.string(), paths: z.record(z.string(), z.unknown()), components: z.unknown() })
    .parse(resolve(parse(text), parse(text)))
  return {
    openapi: document.openapi,
    operations: Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(members(item))
        .filter(([method]) => methods.includes(method))
        .map(([method, operation]) => toOperation({ path, method, shared: members(item)['parameters'] }, operation)),
    ),
    headerExamples: Object.values(members(members(document.components)['headers'])).flatMap((header) =>
      Object.values(members(members(header)['examples'])).map((example) => ({
        schema: members(header)['schema'],
        value: members(example)['value'],
      })),
    ),
  }
}

const parameterSchema = z.array(z.object({ name: z.string(), in: z.string(), schema: z.unknown() })).default([])

const toOperation = (
  place: { readonly path: string; readonly method: string; readonly shared: Node },
  operation: Node,
): DocumentedOperation => {
  const { operationId, parameters, requestBody, responses } = z
    .object({
      operationId: z.string(),
      parameters: parameterSchema,
      requestBody: z.unknown().optional(),
      responses: z.record(z.string(), z.unknown()),
    })
    .parse(operation)
  return {
    method: place.method.toUpperCase(),
    path: place.path,
    operationId,
    parameters: [...parameterSchema.parse(place.shared), ...parameters],
    requestSchema: schemasOf(requestBody)['application/json'],
    responses: Object.entries(responses).map(([status, response]) => ({
      status: Number(status),
      schemas: schemasOf(response),
      headers: mapValues(members(members(response)['headers']), (header) => members(header)['schema']),
    })),
  }
}

const schemasOf = (node: Node): Readonly<Record<string, Node>> =>
  mapValues(members(members(node)['content']), (media) => members(media)['schema'])

const mapValues = (
  object: Readonly<Record<string, Node>>,
  change: (value: Node) => Node,
): Readonly<Record<string, Node>> =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]))

/** The node with every `$ref` replaced by what it names. */
const resolve = (node: Node, document: Node): Node => {
  if (Array.isArray(node)) return node.map((item) => resolve(item, document))
  if (typeof node !== 'object' || node === null) return node
  const reference = members(node)['$ref']
  if (typeof reference !== 'string') return mapValues(members(node), (value) => resolve(value, document))
  const target = reference
    .replace(/^#\//, '')
    .split('/')
    .reduce<Node>((at, name) => members(at)[name], document)
  if (target === undefined) throw new Error(`${reference} leads nowhere`)
  return resolve(target, document)
}

/** Whether a value fits a JSON Schema of the document. */
export const fits = (schema: Node, value: unknown): boolean =>
  z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]).safeParse(value).success

/** The values that `error.code` may have by a response's schema. */
export const codesOf = (response: DocumentedResponse): readonly string[] =>
  z
    .array(z.unknown())
    .parse(members(response.schemas['application/json'])['allOf'] ?? [])
    .flatMap((part) => {
      const error = members(members(members(part)['properties'])['error'])
      const code = members(members(error['properties'])['code'])
      return z.array(z.string()).parse(code['enum'] ?? [])
    })

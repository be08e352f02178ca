import OpenAI from 'openai'

/** The unmodified OpenAI SDK, as a user sets it up. Has a file of its own: tests without it do not load its 150 modules. */
export const openai = (
  url: string,
  options: { readonly apiKey?: string; readonly headers?: Record<string, string>; readonly maxRetries?: number } = {},
): OpenAI =>
  new OpenAI({
    baseURL: `${url}/v1`,
    apiKey: options.apiKey ?? 'test-key',
    maxRetries: options.maxRetries ?? 0,
    ...(options.headers === undefined ? {} : { defaultHeaders: options.headers }),
  })

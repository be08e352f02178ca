/** OpenAI's three ways to run a model. */
export type InferenceApi = 'completions' | 'chat' | 'responses'

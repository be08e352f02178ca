import { llamaServers } from '../support/llama-servers.ts'
import { describeReplays } from './replayed-conversations.ts'

describeReplays('real llama-server', llamaServers([[]], { slots: 2 }))

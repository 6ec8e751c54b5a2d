import { Document, isScalar, visit } from 'yaml'
import { harmlessJson } from '../../../schemas/plain-text.ts'

/**
 * The value as YAML, in a text that has no effect where it is printed. Strings with special characters are
 * double-quoted, in which they are escaped.
 */
export function yamlText(value: unknown): string {
  // through JSON: what is undefined is left out in both
  const document = new Document(JSON.parse(JSON.stringify(value)))
  visit(document, {
    Scalar(_, node) {
      if (isScalar(node) && typeof node.value === 'string' && harmlessJson(node.value) !== node.value)
        node.type = 'QUOTE_DOUBLE'
    },
  })
  return harmlessJson(document.toString({ lineWidth: 0 }))
}

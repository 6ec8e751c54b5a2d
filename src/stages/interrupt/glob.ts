/**
 * Shell-style match of one name, as the keys of configInterrupts use it: `*` any run of characters but `/`, `?` one of
 * them, `[…]` a class (`[^…]` its opposite), `\` takes the next character literally. A malformed pattern matches
 * nothing.
 */
export function matchesGlob(pattern: string, name: string): boolean {
  const expression = toExpression(pattern)
  return expression !== undefined && expression.test(name)
}

function toExpression(pattern: string): RegExp | undefined {
  let source = ''
  for (let index = 0; index < pattern.length; index++) {
    const character = pattern.charAt(index)
    if (character === '*') source += '[^/]*'
    else if (character === '?') source += '[^/]'
    else if (character === '\\') {
      index++
      if (index >= pattern.length) return undefined
      source += literal(pattern.charAt(index))
    } else if (character === '[') {
      const end = pattern.indexOf(']', index + (pattern.charAt(index + 1) === '^' ? 3 : 2))
      if (end < 0) return undefined
      const inside = pattern.slice(index + 1, end).replaceAll(/[\\[\]]/g, '\\$&')
      source += `[${inside}]`
      index = end
    } else source += literal(character)
  }
  try {
    return new RegExp(`^${source}$`, 'su')
  } catch {
    return undefined // a class such as [z-a]
  }
}

const literal = (character: string): string => character.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')

import type { AskRule, AskWord, Connection, StricterWord } from "../api/connections";

/** Stands for every tool that is not named. */
export const ALL = "*";

/** When the person is asked, of both words. */
export type Asked = AskWord | "by_arguments_first_use";

/** What the person says, by the tool's name; null takes back what they said. */
export type Words = ReadonlyMap<string, StricterWord | null>;

const WORDS = ["first_use", "always"] as const;
/** How strict a word is. What depends on the arguments may come to nothing. */
const RANK = { never: 0, by_arguments: 0, first_use: 1, always: 2 };

/** The rules on a server's tools. Names are the server's: any may come. */
export class AskRules {
  readonly #rules: ReadonlyMap<string, AskRule>;
  /** The tools that there is something to say of: those listed, then those only rules name. */
  readonly tools: readonly string[];
  readonly #listed: readonly string[];

  constructor({ approval, tools }: Pick<Connection, "approval" | "tools">) {
    this.#rules = new Map(Object.entries(approval.rules));
    this.#listed = tools.map(({ name }) => name);
    this.tools = [...new Set([...this.#listed, ...this.#rules.keys()])].filter((name) => name !== ALL);
  }

  /** What was said without the person. What cannot be known counts as the strictest. */
  operator(tool: string): AskWord {
    return (this.#rules.get(tool) ?? this.#rules.get(ALL))?.operator ?? "always";
  }

  /** The person's own word on just this, with what they are about to change. */
  yours(tool: string, changed?: Words): StricterWord | null {
    const word = changed?.get(tool);
    return word === undefined ? (this.#rules.get(tool)?.yours ?? null) : word;
  }

  /** What holds for a tool, or for all, without the person; null where that is not the same for all. */
  operatorOf(tool: string): AskWord | null {
    return same(this.#covered(tool).map((each) => this.operator(each)));
  }

  /** When the person is asked before a tool is called: the stricter word counts. */
  asked(tool: string): Asked {
    const operator = this.operator(tool);
    const own = this.yours(tool) ?? this.yours(ALL);
    if (own === null || RANK[own] <= RANK[operator]) return operator;
    return operator === "by_arguments" && own === "first_use" ? "by_arguments_first_use" : own;
  }

  /** The same of all tools; null where it is not the same. */
  askedOfAll(): Asked | null {
    const tools = this.#listed.length > 0 ? this.#listed : this.#covered(ALL);
    return same(tools.map((tool) => this.asked(tool)));
  }

  /**
   * What the person may say of a tool, or of all: nothing looser than what holds without them. A word
   * on one tool may be looser than their own on all of them.
   */
  offered(tool: string, changed?: Words): StricterWord[] {
    const least = Math.min(...this.#covered(tool).map((each) => RANK[this.operator(each)]));
    if (least === RANK.always) return [];
    // As strict as it is anyway: it lifts their own word on all, or it is what they have said.
    const said = this.yours(tool, changed);
    const isLifting = tool !== ALL && this.yours(ALL, changed) === "always";
    return WORDS.filter(
      (word) => RANK[word] > least || (RANK[word] === least && (isLifting || word === said)),
    );
  }

  /** Whether the person can make anything stricter, or take anything back. */
  get canBeChanged(): boolean {
    return [ALL, ...this.tools].some((tool) => this.offered(tool).length > 0);
  }

  /** All that the person says then, which takes the place of what they said before. */
  said(changed: Words): Record<string, StricterWord> {
    const words = [...new Set([...this.#rules.keys(), ...changed.keys()])].map(
      (tool) => [tool, this.yours(tool, changed)] as const,
    );
    return Object.fromEntries(
      words.filter((each): each is readonly [string, StricterWord] => each[1] !== null),
    );
  }

  /** What a word on a tool, or on all, is about. */
  #covered(tool: string): string[] {
    return tool === ALL ? [ALL, ...this.tools] : [tool];
  }
}

function same<Word>(words: readonly Word[]): Word | null {
  const [first = null, ...others] = new Set(words);
  return others.length > 0 ? null : first;
}

"""Wordings of declined answers in fourteen languages, as patterns on folded text; data of `lim_core.abstention`."""

from __future__ import annotations

import re

# --- statements about the documents, as subject + "does not say" ----------------------------------------------------

_EN_DOCUMENTS = (
    r"(?:(?:document|passage|text|context|source|excerpt|article|material|snippet|(?:search )?result"
    r"|reference|chunk)s?"
    r"|(?:provided |given |available |supplied )information|none of (?:the|these) \w+)"
)
STATEMENTS = (
    # English
    rf"\b{_EN_DOCUMENTS}(?: \w+){{0,3}}? (?:do(?:es)?|did)(?: not|n't) (?:\w+ )?"
    r"(?:mention|specify|state|say|tell|indicate|answer|address|disclose|discuss|clarify|reveal|explain)\b",
    rf"\b{_EN_DOCUMENTS}(?: \w+){{0,3}}? (?:do(?:es)?|did)(?: not|n't) (?:\w+ )?(?:contain|provide|include"
    rf"|give|have|offer)"
    r"(?: \w+){0,3} (?:information|details?|answers?|mention|data|references?|indication|evidence)\b",
    r"\b(?:it|they) (?:do(?:es)?|did)(?: not|n't) (?:\w+ )?(?:mention|specify|state|say|tell"
    r"|indicate)(?: (?:it|that|this|so))?[.!]?$",
    r"\bthe answer (?:is|was)(?: not|n't) (?:\w+ )?in (?:the|these|this|any)\b|^no answer (?:was |is "
    r"|could be )?(?:found|given|available)\b",
    r"\bnone of (?:the|these)(?: \w+){1,3} (?:mentions?|specif(?:y|ies)|states?|says?|contains?|answers?"
    r"|provides?)\b",
    r"\b(?:not|n't|never) (?:\w+ )?(?:mentioned|specified|stated|provided|given|found|available|included"
    r"|indicated|disclosed"
    r"|addressed|answered|contained|present|discussed|covered)(?: \w+){0,2} (?:in|by|within) (?:the|these"
    r"|this|any of the|your|my)"
    r"(?: \w+){0,3} (?:documents?|passages?|texts?|contexts?|sources?|excerpts?|articles?|materials?"
    r"|results?|information)(?=\W*$|[.,;:!?)]| (?:provided|given|about|above|that|you|i|we|for|to|so|and|or)\b)",
    r"\b(?:there(?: is| was|'s)|(?:i|we) (?:have|found|see|find)|contains?|provides?|gives?) (?:no|not enough"
    r"|insufficient) (?:\w+ )?"
    r"(?:mention|information|answer|data|indication|details?|evidence|reference)"
    r" (?:of|about|on|regarding|concerning|in|available|provided|given|to|as to|that|here|for)\b",
    r"\b(?:contains?|provides?|gives?|there(?: is| was|'s)|(?:i|we) (?:have|found)) (?:no|not enough|insufficient)"
    r" (?:\w+ )?(?:information|answer|data)[.!]?$",
    r"^(?:no|not enough|insufficient) (?:\w+ )?(?:information|data|details|evidence|context)"
    r"(?: (?:is|was|about|on|regarding|available|provided|given|found|in the|to)\b|[.!]?$)",
    r"^(?:that|this|the|it)(?: \w+){0,4} (?:is|was|are|were)(?: not|n't) (?:mentioned|specified|stated"
    r"|provided|given|disclosed)[.!]?$",
    r"\bthere (?:is|was|are|were)(?: not|n't) (?:any|enough|sufficient) (?:\w+ )?"
    r"(?:information|mention|details?|data|indication|evidence|answer)\b",
    rf"\b{_EN_DOCUMENTS}(?: \w+){{0,3}}? (?:says?|contains?|mentions?|provides?|gives?|states?) nothing\b",
    r"^no mention\b",
    # German
    r"\bsteht (?:\w+ ){0,4}nichts\b|\bkeine (?:informationen|angaben|hinweise|auskunft)[.!]?$",
    r"\b(?:dokument|text|kontext|quelle|abschnitt|auszug|auszugen|passage|unterlage|information)\w*(?: \w+){0,4}"
    r" (?:nicht|kein\w*)(?: \w+){0,5} (?:erwahnt|erwähnt|angegeben|genannt|enthalten|hervor|beantwortet"
    r"|angaben?|information(?:en)?"
    r"|antwort|hinweise?|auskunft)\b",
    r"\b(?:nicht|keine? (?:angaben?|information(?:en)?|hinweise?|antwort)) (?:\w+ ){0,4}?(?:in|aus"
    r"|im) (?:den|dem|diesen|diesem|der)?"
    r" ?(?:\w+ ){0,2}(?:dokument|text|kontext|quelle|abschnitt|unterlage|auszüge)\w*",
    r"\bgeht (?:\w+ ){0,6}nicht hervor\b",
    r"\bkeine (?:angaben?|information(?:en)?|auskunft) (?:\w+ ){0,3}(?:gefunden|vorhanden|verfügbar"
    r"|enthalten|zu|zur|zum|über|darüber)\b",
    # French
    r"\b(?:documents?|textes?|contextes?|passages?|extraits?|sources?|informations?)(?: \w+){0,3} ne (?:le |la |l')?"
    r"(?:mentionn|précis|indiqu|contien|fourni|donn|di|répond|spécifi|permet)\w*(?: \w+)? (?:pas|aucun|rien)",
    r"\b(?:n'est|n'a) pas (?:été )?(?:mentionn|précis|indiqu|spécifi)\w*",
    r"\b(?:information|réponse|donnée|détail)s?(?: \w+){0,3} (?:n'est|n'a|ne sont|n'ont) pas (?:été )?"
    r"(?:fourni|trouv|donn|disponible|présent)\w*",
    r"\baucune? (?:information|mention|réponse|indication|donnée)s?\b(?! n'(?:est|a) à)",
    # Spanish
    r"\b(?:documento|texto|contexto|pasaje|fragmento|fuente|información)s?(?: \w+){0,3} no (?:lo |la )?"
    r"(?:menciona|especifica|indica|contiene|proporciona|dice|responde|incluye|ofrece|da|aclara)n?\b",
    r"\bno se (?:menciona|especifica|indica|proporciona|encuentra|dice|aclara)n?\b(?=.*\b(?:documento"
    r"|texto|contexto|pasaje"
    r"|fragmento|fuente|información)|[^,]{0,30}$)",
    r"\bno (?:hay|tengo|existe|encuentro|encontré|dispongo de)(?: \w+)? (?:información|datos|respuesta|mención)\b",
    # Portuguese
    r"\b(?:documento|texto|contexto|trecho|passage[mn]|fonte|informaç(?:ão|ões))s?(?: \w+){0,3} não (?:o |a )?"
    r"(?:menciona|especifica|indica|cont[eé]m|contêm|fornece|diz|responde|inclu[ie]|informa|dá|esclarece)m?\b",
    r"\bnão (?:é|foi|está|são|foram) (?:mencionad|especificad|indicad|informad)\w*",
    r"\b(?:informaç(?:ão|ões)|respostas?|dados|detalhes)(?: \w+){0,3} não (?:é|foi|está|são|foram|estão) "
    r"(?:fornecid|encontrad|disponíve|presente)\w*",
    r"\bnão (?:há|tenho|existe|encontrei|disponho de)(?: \w+)? (?:informaç(?:ão|ões)|dados|resposta|menção)\b",
    # Italian
    r"\b(?:document[oi]|test[oi]|contest[oi]|pass(?:i|o|aggi|aggio)|font[ei]|estratt[oi]"
    r"|informazioni)(?: \w+){0,3} non (?:lo |la )?"
    r"(?:menzion|specific|indic|conten|contien|forn|dic|rispond|includ|riport|precis)\w*",
    r"\bnon (?:è|viene|sono|vengono|è stat[oa]) (?:menzionat|specificat|indicat|riportat|precisat"
    r")\w*",
    r"\bnon (?:ci sono|c'è|ho|ho trovato|trovo|dispongo di)(?: \w+)? (?:informazion[ei]|dati|risposta|menzione)\b",
    r"\b(?:informazion[ei]|rispost[ae]|dati|dettagli)(?: \w+){0,3} non (?:è|sono|viene|vengono) (?:stat[aei] )?"
    r"(?:fornit|present|disponibil|contenut)\w*",
    r"\bnon ho (?:abbastanza|sufficienti) informazioni\b",
    # Dutch
    r"\b(?:informatie|antwoord|dit|dat) (?:\w+ )?sta(?:at|an) (?:\w+ )?niet in\b",
    r"\b(?:document|tekst|context|passage|bron|fragment|informatie)\w*(?: \w+){0,4} (?:niet|geen)(?: \w+){0,3}?"
    r" ?(?:vermeld|genoemd|gegeven|informatie|antwoord|aangegeven|beschreven|beantwoord)\w*",
    r"\b(?:niet|nergens) (?:vermeld|genoemd|terug te vinden|te vinden|gevonden) (?:\w+ ){0,2}?(?:in|uit)\b",
    r"\bgeen (?:informatie|antwoord|gegevens|vermelding) (?:\w+ )?(?:over|gevonden|beschikbaar|in|van|op)\b",
    r"\b(?:document|tekst|context|bron)\w*(?: \w+){0,3} (?:vermeld|noem|zeg|geef"
    r"|bevat)\w*(?: \w+){0,4} (?:niet|geen)\b",
    # Polish
    r"\b(?:dokument|tekst|kontekst|fragment|źródł|materiał)\w*(?: \w+){0,4} nie (?:ma|zawiera|wspomina"
    r"|podaje|określa|mówi|podano"
    r"|wspomniano|znajduje|precyzuje|odpowiada|wynika)\w*",
    r"\bnie (?:ma|zawiera\w*|znaleziono|znalazłem|znalazłam|posiadam|mam)(?: \w+){0,2} (?:informacji"
    r"|odpowiedzi|danych|wzmianki)\b",
    r"\bbrak (?:\w+ )?(?:informacji|danych|odpowiedzi)\b",
    # Russian
    r"\b(?:информаци|сведени|данны|ответ)\w* (?:\w+ ){0,3}(?:отсутству|недостаточно|не хватает)",
    r"\b(?:документ|текст|контекст|отрыв|фрагмент|источник|материал"
    r"|информаци)\w*(?: \w+){0,4} не (?:указан|упомина|упомян|содерж|говор"
    r"|сказан|сообща|дан|привод|уточня|представлен)\w*",
    r"\bнет (?:\w+ ){0,2}(?:информации|данных|ответа|упоминани\w|сведений)\b",
    r"\bне (?:указано|упоминается|упомянуто|сообщается|говорится|найдено|нашел|нашла|нашлось)\b",
    # Turkish (folded: the dotless i is written i)
    r"\b(?:belge|metin|metn|bağlam|kaynak|parça|doküman|pasaj)\w*(?: \w+){0,8} (?:yok|bulunm\w+"
    r"|belirtilm\w+|yer alm\w+|geçm\w+"
    r"|bahsedilm\w+|verilm\w+|içerm\w+|söylenm\w+)",
    r"\b(?:bilgi|cevap|yanit|veri) (?:\w+ )?(?:yok|bulunm\w+|bulamad\w+|verilm\w+|mevcut değil)",
    # Arabic
    r"(?:المعلومات|المعلومة|الإجابة) (?:\w+ ){0,2}غير (?:متوفرة|متاحة|موجودة|كافية|معروفة|مذكورة)",
    r"(?:لا|لم|ليس|ليست) (?:\w+ ){0,3}?(?:يذكر|تذكر|ذكر|يرد|ترد|تحتوي|يحتوي|توجد|يوجد|تتضمن|يتضمن|يحدد"
    r"|تحدد|توضح|يوضح|تتوفر)"
    r"(?: \w+){0,4} (?:النص|النصوص|المستند|المستندات|الوثيقة|الوثائق|السياق|المعلومات|معلومات|إجابة|المصادر|المقاطع)",
    r"(?:النص|النصوص|المستند|المستندات|الوثيقة|الوثائق|السياق|المصادر|المقاطع)(?: \w+){0,2} (?:لا"
    r"|لم) (?:يذكر|تذكر|يحتوي|تحتوي"
    r"|يتضمن|تتضمن|يحدد|تحدد|يوضح|توضح)",
    # Chinese
    r"(?:文档|文件|文章|文中|资料|材料|上下文|段落|原文|文本|信息|內容|内容|文檔|資料|段落|原文|資訊).{0,8}?"
    r"(?:没有|沒有|并未|並未|未|不).{0,3}?(?:提到|提及|提供|说明|說明|包含|包括|给出|給出|指出|涉及|足够|足夠|相关|相關|记载|記載|明确|明確|足)",
    r"(?:没有|沒有|缺乏|缺少|未找到|没找到|找不到).{0,4}?(?:相关|相關|足够|足夠|任何)?(?:的)?(?:信息|資訊|资料|資料|答案|内容|內容)",
    # Japanese
    r"(?:文書|文章|文脈|資料|ドキュメント|テキスト|コンテキスト|本文|情報源|記事|情報|回答|答え).{0,16}?"
    r"(?:記載され|書かれ|述べられ|言及され|含まれ|示され|提供され)て(?:い|お)?(?:ない|ません|りません)",
    r"(?:記載|言及|情報|記述|答え|回答).{0,3}?(?:が|は)?(?:ありません|ない(?:です|ため|。|$)|見つかりません|見当たりません|見つからない)",
    # Korean
    r"(?:문서|본문|텍스트|문맥|자료|지문|정보|내용|답).{0,14}?(?:없습니다|없다|없어요|없음|나와 ?있지 ?않|언급되지 ?않"
    r"|언급되어 ?있지 ?않"
    r"|포함되어 ?있지 ?않|명시되어 ?있지 ?않|제공되지 ?않|찾을 ?수 ?없)",
)

REFUSALS = (
    # English
    r"\bi dont know\b",
    r"\b(?:i|we) (?:do(?:n't| not)|really do(?:n't| not)|honestly do(?:n't| not)) (?:\w+ )?(?:know"
    r"|have (?:\w+ ){0,3}(?:information|answer|data|access"
    r"|details|context))\b",
    r"\b(?:i|we)(?:'m| am|'re| are) (?:\w+ )?(?:not (?:\w+ )?(?:sure|certain|aware|able to)|unsure"
    r"|unable to|unaware)\b",
    r"\b(?:i|we) (?:\w+ )?(?:can ?not|can't|could(?:n't| not)|am unable to|was unable to"
    r"|were unable to) (?:\w+ )?(?:answer|find|determine|tell"
    r"|locate|say|provide|give|see|identify|confirm|help|verify|infer|be sure)\b",
    r"\b(?:can ?not|can't|could(?:n't| not)) be (?:\w+ )?(?:determined|answered|found|inferred"
    r"|established|known|derived|deduced|ascertained)\b",
    r"\b(?:impossible|not possible|no way|unable) to (?:\w+ )?(?:determine|answer|say|tell|know|establish)\b",
    r"\b(?:the )?(?:question|answer|it|this|that) (?:is|remains) (?:unanswerable|unknown|not (?:known"
    r"|clear|available|answerable)|unclear)"
    r"(?=[.,;!]|$| (?:from|in|to me|based|whether|given))",
    r"\b(?:not enough|insufficient|no) (?:\w+ )?(?:information|context|data"
    r"|evidence)(?: \w+){0,3} to (?:\w+ )?(?:answer|determine|say|tell)\b",
    r"\b(?:i|we) (?:have|had|found|find|see) no (?:\w+ )?(?:information|idea|answer|data|knowledge|record"
    r"|mention|clue)\b",
    r"\bno idea\b[.!]?$",
    r"\bbeyond my knowledge\b",
    # German
    r"\b(?:ich |wir )?wei(?:ss|ß) (?:ich |wir )?(?:es |das |die antwort )?(?:leider )?nicht\b",
    r"\b(?:kann|könnte|konnte|können) (?:\w+ ){0,7}?(?:nicht|keine?)(?: \w+){0,4} (?:beantwort|sagen"
    r"|finden|bestimm|ermitt|feststell|entnehm"
    r"|entnommen|geben|gefunden|herausfind)\w*",
    r"\b(?:lässt|lassen) sich (?:\w+ ){0,6}?nicht (?:\w+ ){0,4}(?:beantworten|bestimmen|ermitteln"
    r"|entnehmen|sagen|feststellen)",
    r"\bkeine ahnung\b",
    r"\b(?:ist|bin) (?:mir )?(?:leider )?(?:nicht (?:bekannt|sicher)|unbekannt)[.!]?$",
    # French
    r"\bje ne (?:le |la |l')?(?:sais|peux|connais|trouve|dispose|suis|parviens) (?:\w+ )?(?:pas|aucun)\b",
    r"\bje n'(?:ai|en ai|arrive|en sais) (?:\w+ )?(?:pas|aucune?|rien)\b",
    r"\b(?:impossible|pas possible) (?:de|d')(?: )?(?:répondre|déterminer|savoir|dire)\b",
    r"\bil n'(?:y a|existe) (?:pas|aucune)(?: \w+){0,2} (?:d'information|d'informations|information"
    r"|réponse|mention)\w*",
    r"\baucune idée\b",
    # Spanish
    r"\bno (?:lo )?(?:sé|conozco)\b",
    r"\bno (?:puedo|podemos|pude|es posible|se puede) (?:\w+ )?(?:responder|determinar|contestar"
    r"|encontrar|saber|decir|confirmar)\w*",
    r"\b(?:se )?desconoce(?:mos)?\b(?=[.!]?$)|\bni idea\b|\bno estoy segur[oa]\b",
    # Portuguese
    r"\bnão (?:o |a )?(?:sei|conheço|tenho certeza)\b",
    r"\bnão (?:posso|consigo|pude|consegui|é possível|foi possível|podemos) (?:\w+ )?(?:responder"
    r"|determinar|encontrar|saber|dizer|informar|afirmar)\w*",
    # Italian
    r"\bnon (?:lo )?(?:so|conosco|saprei|sono sicur[oa])\b",
    r"\bnon (?:posso|riesco a|è possibile|sono in grado di|si può|possiamo) (?:\w+ )?(?:rispondere"
    r"|determinare|trovare|sapere|dire|stabilire|fornire)\w*",
    # Dutch
    r"\b(?:ik )?weet (?:ik )?(?:het |dat )?(?:helaas )?niet\b",
    r"\b(?:kan|kon|kunnen) (?:\w+ ){0,7}?(?:niet|geen)(?: \w+){0,4} (?:beantwoord|vinden|zeggen|bepa"
    r"|opmaken|geven|vaststellen|worden)\w*",
    r"\bgeen idee\b|\bis (?:mij )?(?:niet bekend|onbekend)[.!]?$",
    # Polish
    r"\bnie (?:wiem|znam (?:\w+ )?odpowiedzi|jestem (?:pew\w+|w stanie)|potrafię|mam pojęcia)\b",
    r"\bnie (?:mogę|można|da się|udało się) (?:\w+ ){0,3}?(?:odpowiedzieć|określić|ustalić|znaleźć"
    r"|stwierdzić|powiedzieć|udzielić)",
    # Russian
    r"\b(?:я |мы )?не (?:знаю|знаем|уверен|уверена|располагаю)\b",
    r"\b(?:не могу|не можем|невозможно|нельзя|не удалось|не смог|не смогла"
    r"|не представляется возможным) (?:\w+ ){0,3}?(?:ответить|определить"
    r"|найти|сказать|установить|дать|узнать)",
    r"\b(?:ответ|это) (?:\w+ )?неизвест\w+",
    # Turkish
    r"\bbilmiyor(?:um|uz)\b|\bemin değil(?:im|iz)\b|\bbilgim yok\b|\bfikrim yok\b|\bbilinmiyor[.!]?$",
    r"\b(?:cevapla|yanitla|belirle|bul|söyle|saptan|tespit ed)\w*(?:yamiyor|yemiyor|amiyor|emiyor|yamam"
    r"|yemem|amam|emem|yamad|yemed|amad|emed"
    r"|enemez|anamaz|enemiyor|anamiyor)\w*",
    r"\b(?:cevap|yanit) (?:veremi\w+|veremem\w*|verilemi\w+|bilinmiyor)",
    # Arabic
    r"(?:لا|لست|لم) (?:أعرف|أعلم|ادري|أدري|نعرف|نعلم|متأكدا|متأكد|أجد|أستطيع|يمكنني|يمكننا|يمكن|أتمكن)(?=\W|$)"
    r"(?! (?:\w+ ){0,2}(?:الدخول|الدفع))",
    # Chinese
    r"(?:我|我们|我們).{0,4}?(?:不知道|不清楚|不确定|不確定|不了解|无法|無法|不能回答)|^(?:抱歉|对不起|對不起|很遗憾|很抱歉).{0,6}?(?:不知道|不清楚|无法|無法|不能)"
    r"|^(?:不知道|不清楚)(?:[。.!！]|$)",
    r"(?:无法|無法|不能|难以|難以).{0,8}?(?:确定|確定|回答|得知|判断|判斷|找到|得出|推断|推斷|提供答案|知道)",
    # Japanese
    r"(?:分|わ)か(?:りません|らない|りかね)|知りません|存じません|お答えできません|不明です|不明。?$",
    r"(?:答え|回答|特定|判断|確認|断定|見つけ|判別).{0,6}?(?:できません|できない|ることができ(?:ません|ない)|られません|られない)",
    # Korean
    r"(?:모르겠|모릅니다|몰라요|모른다|알 ?수 ?없|알지 ?못|확실하지 ?않|확신할 ?수 ?없)",
    r"(?:답변|대답|답|확인|판단|결정).{0,4}?(?:할|드릴|줄) ?수 ?없",
)

# "unknown", "n/a" and their like, only where they are all of the answer.
_BARE = (
    "unknown|not known|n/a|na|n.a.|not found|no answer|none found|not available|not applicable|"
    "unanswerable|not specified|not mentioned|not provided|not stated|not given|not sure|unclear|"
    "no information|no data|insufficient information|idk|null|none|unsure|unbekannt|nicht bekannt|"
    "keine angabe|keine angaben|k. a.|k.a.|keine antwort|nicht angegeben|nicht erwähnt|inconnu|"
    "inconnue|non précisé|non mentionné|non spécifié|pas de réponse|sans réponse|desconocido|"
    "desconocida|se desconoce|sin respuesta|no especificado|no mencionado|no disponible|desconhecido|"
    "desconhecida|sem resposta|não informado|não especificado|não mencionado|não encontrado|"
    "sconosciuto|sconosciuta|ignoto|nessuna risposta|non specificato|non disponibile|non indicato|"
    "onbekend|geen antwoord|niet bekend|niet vermeld|nieznany|nieznana|nieznane|nie podano|brak|"
    "brak odpowiedzi|неизвестно|нет ответа|не указано|нет данных|нет информации|bilinmiyor|"
    "belirtilmemiş|cevap yok|bilgi yok|غير معروف|غير مذكور|غير محدد|لا توجد إجابة|未知|不明|不详|"
    "不詳|未提及|未提供|未说明|無し|なし|記載なし|該当なし|情報なし|没有答案|沒有答案|无|알 수 없음|"
    "없음|정보 없음|모름"
)
BARE = frozenset(_BARE.split("|"))
# The sentence goes on to offer an answer after all.
OFFERS = re.compile(
    r"(?:\b(?:but|however|although|though|aber|doch|mais|pero|mas|ma|però|maar|ale|но|ama|لكن)\b|但|でも|しかし|하지만)"
    r"(?:,? \w+){0,2}?,? ?(?:\bi (?:think|believe|guess|assume|suppose|suspect)|\bit(?:'s| is| was"
    r"| must be| might be| may be| could be)"
    r"|\bprobably|\blikely|\bperhaps|\bmaybe|\bmy (?:best )?guess|\bthe answer (?:is|may|might|could)"
    r"|\bich (?:glaube|denke|vermute)"
    r"|\bvermutlich|\bwahrscheinlich|\bje (?:pense|crois)|\bprobablement|\bcreo|\bprobablemente|\bacho"
    r"|\bprovavelmente|\bcredo|\bpenso"
    r"|\bprobabilmente|\bik denk|\bwaarschijnlijk|\bmyślę|\bprawdopodobnie|\bдумаю|\bвероятно|\bsanirim"
    r"|\bmuhtemelen|\bأعتقد|可能|应该|多分|おそらく|아마)"
)
OPENERS = re.compile(
    r"^(?:(?:i'?m |i am |we'?re |we are )?(?:very |so )?(?:sorry|apologi[sz]e)|i apologi[sz]e"
    r"|unfortunately|es tut mir leid|tut mir leid|leider|désolée?"
    r"|lo siento|desculpe|sinto muito|mi dispiace|helaas|sorry|przepraszam|przykro mi|извините"
    r"|к сожалению|üzgünüm|maalesef|عذرا|آسف"
    r"|抱歉|对不起|對不起|申し訳(?:ありません|ございません)|すみません|죄송합니다)\W*$"
)

// Pieces of English text, JSON and code that are frequent in the documentation and sources of open packages, the most
// frequent first, so that each is mostly made of two before it: what byte-pair encoding learns.

/** Non-empty, without white space, in ASCII. */
export const commonFragments: readonly string[] = `
  re in on er en at es or ed st al th ion an se de le ing ar it ct ro ent ch co as am ce ur is ut un ex ad im lo con
  il pt et li ul pe no fi ort res to ag all tr port ation he for ers pro qu ma us ab ck str ate od id um com ect ter
  and ve ly ith ol be the ption ty est end ue urn ess ap fa () ass cl "" ver val up em rom ri .. ult of mo wh ror ke
  par are ext el di ame age ret out ): ra per ject so ht do with not fin po __ ig from int ction able read ub return
  In one ne Re if ic cont pon import red ple form // by put set ho ** ated ob me ist vi ca pl js ## pre requ arg
  string ents ack ptions ON type The call pat ts te ime tp ser Er iz ci Error yn that wa http name ", fault low bo
  our om ds ther Res AP can -- """ cri IN class del De only ill Con ren ac code object fo ise this cre ber use op get
  ta ). inst num che spe ponse ata API Ty ream fe ment cess act lin ener == add :// ans time wn ync ust defin Th ),
  der iv ive bu app No inter lic key Par ', whi ase unction https atch av param cur ens default we (' number value
  typ ER Type ity wr ') list error */ /** vers ions request [] ding ff mod iter but ]( Se run ctor sup its used fig
  ain defined vent any alse min pres path des ure ": ace wor export This function To thod ray RE const St }, nect
  options star fil ted ang LE file pass when gener ti has will ha ance log )) Ex new pi load uld back ou method Ar
  stream ys ally ll model ize ator def ole other Param cript 's AT data tri ues open Un which sel vo und ign max eng
  self clu comm speci text => Response If unt ource may An types wait None cept lient EN support pend Ret sh For ?:
  ithub github ... As essage AL sub ames ail sho ition connect stat pos ant ull py node ], au cor rent api ations
  stru AR Requ dis }) requi config argum Options specifi unk here af ody head line Tr ead true doc result ast writ
  Pro ces map test iss ach ../ init ./ iven proper ils AC undefined trans process ptional fiel dex ip olean tem ary
  ok OR tes col Fi ") reg more Val (" ron En format values inclu ID face SI item char ial start row input vid ST over
  (): ard List tok "] work ild version JS you readonly ong IT ww ule valid create boolean imit org names response
  Return does fix cal clo secon ifi >; ffer dire su np Params try interface AN args output fol arn else nown pr
  comple contain need must feren ends Prom hand client sour Call ib DE sed pack enco Array instance ind iteral io
  ates ide was rst Async Ke ep message index after match UR 't npm ay ailable have false cket ir Mo File lat ession
  Request provid Event ._ should SE [" tool lib available turn body Tool ched fore HT ak remo ry user lob check first
  ev sto Wh ); raise current '; ery dele ages ence ec source server thon ING .""" abl given ength Promise chang tern
  Com ample JSON Bu uration gr Stream decl auth sing module ses null True content Ad False follow Cre paramet ({ url
  sy using prec ory met fail ref var async ': ting imple arch pen date ]: allow Str size prom cted await ify seconds
  field context void aut before UT main Value ark Literal IC __( lock Zod ference md ason limit each ### Default ies
  Open Co gro bet deta array vel docs declare ous json then see We ress Ms ish long -> tribut respon ]) very Set Lo
  pare point hether descri ath same ION bytes pa See Key length ved event ways thing ident base unknown sign ms miss
  wo ded pace pty than itional timeout Im make cache ge arguments ict write except Al place Not charact que files
  Read [' os property non OT ger where vice Use without dir abel ments exec like while level tim extends Optional fl
  rece gu Ch headers generated Node into require ful It mark spec pod formation ine =" ating go order empty present
  case imum IG next TH On sa mem command Time way returned state session instead edi now append some dec cons
  information errors CON press Ob access ai lif Create hel stem also returns resol example RO QU Add ustom package
  ice ulti constru reak objects last exist warn supported .__ mit cation ED licy adata send When Base query ible ped
  ten passed URL Ser ug Returns Buffer status pri details Resource own So ose count print reason host viron there
  following handl net Head UL ctory bas ctions argument option dio Object provided igno nel ml created models ative
  link parse ization what '] specified ree US patch rc ties man extr TP tokens resource prefix your glob Model close
  break cle local openai depend termin ception via raw www build === execut multi less encoding ValueError '../ ----
  block (( off Iter medi items called loat bin additional String they attr Config cp token ph HTTP calls ES mode
  Union Timeout implement project mb parameters ese ask install params cause ument optional oin contin (). sent dic
  len cached tion AD Id python Run ither group Arg Script orig ite velo Page './ oper description bug every previ
  part search pected Ag wrap && proto chunk lector join events "; transform opt ix Cont store ]] ived specific info
  '. "> {" report ws ility Out prompt retri tal wise sor pers throw gram Name stand requests ert keys filen annel
  ready extens single VE thread ense ew custom iel float environ flag pub lint label develo chema "./ }; cord system
  uple lease Po origin characters static elif LO ince comp include vari Au "^ ght cy atic how auto script igh
  constructor sequ ot Headers ENT such sys been reference coder By sole cs Up IS socket Wr AM CH ources about direct
  properties hol crement their ules nor callback web compat Cur Web strings metadata git arget win final tools omit
  until ures once update plat ween maximum exp typing keep kw GE between pret extra warning CONT *, under Path core
  Gener Dele src PO console Py At thro Tok Map IL Context ual them OF directory '' isinstance high CO dev hell buffer
  Agent ning ros namespace ended >> both Vers ized copy annot decode MA perform abled With inte methods cannot </
  whether rol plate gate coding Note oc look precated down {} find cho tribute ()) eve DO (), utils ured Defaults
  replace Output Client ange cies Get required cremental SH IP ride represent AI ume platform header AB colle err
  encode APIResource ins delete Version Message failed wer slo ced ". target initial curity strict configuration !=
  received found continue change EX always Python address ATION struct previous connection ature take filter essages
  ampl TER signal Ali Input total applic uses buil ply brow never ides Connect these safe expi mbol html fields
  either Num ACK global exit intern dest br author Of would race resources ping norm being share prob ight =' ([ ager
  standard nt essions foo NO '); eval Us Requi qual Sto usage eta since results ves setting cate Dis omatic Proper
  Int kip ash vg syn regist ases Trans let ccess ell Qu Inter image ifier Function CI streaming All ft fr ables VER
  Turn Data ignore dif (_ ute encies most acy template added right ision heck handle filename Check ugh plit complete
  "@ ush ually pression += memory dist dict IGHT svg another INE Ho poss Whether Mapp Ca two bad licit kwargs comput
  messages kind kes doesn byte Omit Body post accept Number HE >( tect Text remove UN cap leg fut Only parameter
  indic Item channel ants ines du Server Dict ical policy etch Mod Alias trace table split coun child Socket lish
  full []; strip NOT xF mail havi xC fast bool You sec lines invalid conver Sync ../../ responses cance LET ![ uni
  cast UM stop security page msg ele Info (); Given xB uring service parsed debug OS ors lied extensions behavi ava
  OpenAI Spe sets obj fer tuple kv bers audio qui produ Ap pag omatically internal Stat Hand ALL >, separ pool ceed
  aw Over Content Beta eff cover vide through still pattern flow based FT entry ME rary Form Cache wrapper engine
  Depend Any generator cli '): multiple because Cursor std environment assert parent none legacy bound amp chron zer
  range otherwise deprecated Cl Per /* program [![ tifi Session xE publish Inst document Exception modifi SM });
  CreateParams within already built UP word httpx determin bit OpenAPI closed Usage Status Java maybe calling Tokens
  xD possible mission cr anization cer application SIG Policy tain running parser expected Send Record CursorPage
  least ination Iterable posit Le preced fun don behavior agent RI Incremental CT tl schema emit ]. Query Do CP >=
  pes latest inator functions contains convers known dows deleted done JavaScript END Cho Delete tier pile ential [:
  ET normal future chronous RA stored starts sessions roll amed altime sty modules means TAL KV "]] oci ARE mediate
  loads ler fact fs FI mon istr curs Result .... automatically nap finish xb containing ries browser useful ferent
  SIS SO streamed illi associ Comple uber ubernet ubernetes retrieve Valid Source parts clear appro Mapping lower
  defaults Args Ab reject different dit #### just gateway abs || env Or DI endpoint bed Property Selector sort
  TypeAlias Lic integer ices Bo protocol precedence including ending NotGiven img estamp during PE zero util sele
  mapping turns prior asc aces want quo ibility cent BaseModel ove invo action CK ular '/ root play napsho license
  eration allowed MIT voy resolve gh ][ Fil started existing control completed Always king aren Reg release pair buf
  apply ITH pods antic named kill illiseconds guides Sup compil [], second help associated EL skip enabled come beta
  implementation altern ListParams Codec handler exception detect cription common ..._ versions top ru character aim
  yiel ities ground ench Configuration Auth sim runs phan imits explicit ARK paths developers removed redu fetch
  engines warnings queue amples Shell Required REE pose desc chat timestamp style sum ross changes specify original
  left ike gpt admin One CENT ={" written those compile Mcp --- '?: vate success ector allo Typed SP Abort tree
  organization cape beg Secon Sy Choice ?? ternal stor ick SS !== sl changed ONE identifier xy serial fill
  annotations ATOR unless sp nothing longer tax oft milliseconds hold entries Override Ma upd times XX TypeError
  Import ESIS "/ napshot Sub xA words symbol requires lang Red rop exc }") hash generate WITH Like xd side
  performance library ises idth force correspon andom UB Seconds made included hook typescript recomm ACE Other Code
  instru Update Format /{ tag MARK Expected izer istant instan fd Limit pipe larg eslint BUT pop OP Index }:
  processing matching know big answer Role CL Met INT takes ives flags connector Bytes xe sem ire even bench Sign ner
  SION Image ward tempt Pod PAR provides eg drop activ RIGHT tial oid nodejs decoding Chat well scripts patcher
  loaded finally catch IO typeof private preter immediate evalu Types License atta RequestOptions Parse enum consist
  AND Warn rout processed my mer later ields enable effect RIBUT register developer arb redential needed lies exact
  equal LAT classes throws shared gn codecs ToolChoice xa ued repr fn currently badge alternative Address xc ging
  slots settings da Log too tefact stri short secret prog again &# whose position includes actions Wor Each BR needs
  compatibility utf ters shields opts assign width failure dep attribute Unix CONTRIBUT promise Support FO COM round
  reco plug okmark ns ily escape Store Attribute stack offset duration could clude Schema Project Init conversation
  allows Clo runtime provide neg loop ised alt watch variable task reasoning ponses lice immediately Responses Audio
  <= -------- "), referen many getattr gre What User Gr view transport role random fails {@ slot ld ayload ali tests
  starting rele prepare istry anch Retri xf sequent sco ord listen issues dry TY Iterator fully corresponding Uint TI
  Dec inser attempt [- Reason CONTRIBUTING ArrayBuffer yield selector sm literal Win Match section led ader TypedDict
  Generator zip Reader SMALL PL LINE rupt packages plied encoded were presents medium ken entic directly snapshot
  edit claim active Local IGIT Dependencies DIGIT supports art LETTER LATIN tered subsequent sch openapi attribut
  asyn SIGN Is )]( requested operation ino imal charmap There sequence pect pc limits above Test ShellCall Sequ Redis
  ROL RAN CONTROL iod completion cations SPACE OUT CAPI CAPITAL sha Class uage kg ateg Windows Rem Handler Device
  unique instructions begin Tools mut blob Raw Cast BRACK BRACKET trig shell receive holds Sequence Readonly NE FC
  Connection vents temp ount idd ered cost amount abort KE Example Envoy stder stderr sync disable ascript arer LEFT
  LA super relat relative reach exports execution convert bl /> tions ensure LON variables unit recogn ng jest gor
  ear Me Man Completion ?. >): recommended ough ignored fall ULL PER Keys tificate rect persist override iron
  dependencies Castiron public coverage Signal Metadata Creates works pkg orphan old itself ency email chunks Install
  ("/ '), ulated indicates bar Spend OK Ass updated trail ilar binary Realtime AS uplic pick interpreter batch '%
  tenant subs progress negative creating aga against UTE OSError Method supplied small missing frame extend exists
  crim clean artefact Pre Otherwise Invalid remain parsing occur eager ctories ability Work Paramet PH '" push
  language disabled ater Listener LM Eval Decoder representing grace ards Writer }. simple extension etc ever avoid
  TW DEV stdout resolved might mand discrim deep dat checks benchmark VERT Uni Size Date step reposit repository repl
  og kubernetes dig avascript agents WebSocket Det Annot png dition ank Imple Events Allow subclass SEPAR SEPARATOR
  LIC '_ shut metri dra EXT {}) tech guide fc cases TypeScript MIN FE Encoder tun mic wi schem plugin cancel NOTE Ac
  roy payload ites exce ech discriminator define due ICE iterator func directories ategy Symbol PAT FOR Can toge
  together ster pairs omitted master credential WithRaw WithRawResponse Warning Runtime Pick Big )[ sil sched pending
  mean counts cancell ULT Ref BO /*. /# )): }/ uster readable modified ints indent expression configured bearer
  Ident (... }", vis son everything compare cls Search '- uble ked atures DEVICE Channel ids happ free caller RFC RC
  Pool storage pagination javascript correct []): ORT syntax semantic points matches hus generation cursive sep mini
  exceed clus choice background Reference How :] overr lying escap consistent chain These TION Length :** real olute
  hasattr MAX AbortSignal (* numbers network missions maint collection cb accessing StreamWriter StreamReader Resol
  Hel Custom ==== ving ttl registered home feature fter clients cmd SC After stribut special retry pot necess
  distribut duplic below QUOT QUOTATION DEF ux ged element across Wa sers rypt rel az UBLE TO LOW DOUBLE Annotated
  ))) "../../ sw respond resh dici Patch Glob ump stra native mac absolute Current <{ whole ution rest instances
  identity ently enter READ Max IncrementalEncoder Cop '> reader projects prettier destroy Token TL RING Math MIC
  ACCENT urther redis proxy mjs authentic Que IncrementalDecoder Emit sure plain fine eno best Thread Speci "):
  workflow threads rosoft ols members embed consum abc POST )] stract setup quival pretty olume completions commands
  Used GET verbo tre sock keywords interval devDependencies coming ](# THREE Spec LEX removal incomplete href board
  Sh Grader BigInt .", verse underlying large les examples ety eagerly clusive card applied STRO Pr Decision toString
  summ operations location documentation dri contents codes branch attributes align Retrieve listener images dash
  aries SyncAPIResource SequenceNot SequenceNotStr AsyncAPIResource '). startswith spa representation rate quivalent
  pagation pha ified exceptions container attached PropertyInfo Json APIPromise track reset detail priority ention
  decoder compatible ather alias actual Eng Dispatcher }), users streams slash recognized pur manually blocks [])
  STAR Files ...._ "], wever sym refer ools lookup imp alloc ZodCheck UMF UMFLEX THAN State RCUMFLEX Comput
  CIRCUMFLEX 're trun structured scope save istory idered further determine considered colum Ig AttributeError
  validation ration pagationPolicy outputs orhus ones nest emitted assistant UpdateParams TWO Setting NOW thres flush
  alk activity TYPE POINT ImportError End Action untered shutdown slice reading necessary encountered edError
  connected WAR TIL TAB Once NAM FILE Encoding Cli /) ')) yet unicode tell suc similar served sending returning
  registry mcp lex itions held diction defines constants chronously stores something select resourceVersion remote
  reduce partial ound her cov cluster alpha __, Vector SOL Moderation Mock EST >>; (() uch separator iome finished
  LED Command writing validate sav manager logger live guar guaran guarante forward db SQU SQUARE From Ele EM vs
  unset stringify recursive manag makes hit got gen folder comes Vide HEAD zill zilla sampl saf readme mp interpret
  cha cepts ]][ Kv ICAL wards threshold servers represents record raised rather infer gorith comment collect babel
  START Learn GI trav schedul recor preview llam duplicate dropped destination Tim Readable KeyError Argument .)
  worker operator ogle itable connections bind TILDE '], subscri spawn ponsor indi hex flat dispatch ading Environ
  Contain utm retriev period light issue incremental ics ically hostname extract domain delay ased MCP Doc thrown
  sorted references ie iB hello fp decision cii ascii Module Fiel Build proble mozilla inspe external erved ement
  baseName Trace Fin Exec ERESIS DIA DIAERESIS Copy Cance Be ACUTE uid summary regular maintain expires Reasoning
  RAVE GRAVE Expression DN Count AGE **: temper temperature separate roup mocha istants insert features drain TypeMap
  SING ORD Mem Group BE specifies space pino logging job ired compar THESIS QUEST Port PARE PAREN PARENTHESIS Kind
  Implement DOT Aut yc wd sources repe quote oth evi compiler crypt cret ared URLY SOLID SOLIDUS Syn Process Defin
  CURLY Batch vector trigger traceback member express color bookmark binding Specifi ML Deprecated '{ metrics lists
  itespace ison descript computer coded cancelled calc bugs VERTICAL Igno ERR BU waiting wers ling keyof itor
  elements copi bund admission abstract Unicode SHA QUAL EQUAL Control APIs three realtime pid dicate bigint anced
  ave FOUR nodes making labels keyword cing bes alle [, XXX RuntimeError Kubernetes GLE BRE }): tle succeed izers
  exactly dot Write Skill Initial Fail Apply uff serve roller rules nan limited inside factory equivalent ditions
  dead TEXT OVE LICEN LICENSE Exp Environment Container '< turnId regex handlers frames fam expect did commit Wait
  SpendAl Parser POINTING IND ChatCompletion CEL waits ware suf plus nested minimum display Video RON Gate writer ven
  ttp speech others inher ilities idden eric effort collections acing Using PORT NAME Http Element EOF DeleteResponse
  Conver xml wrapp utes sind sindres sindresorhus rfc proc pol nyc expand creates Values Properties More Cer Boolean
  printed paralle ef dictionary counter construct constra condition algorith TRAN Stri Since Parameters ESC ESCAP
  ESCAPE ANGLE windows verbose testing readline patterns optim inputs identifi identical hooks goes dered callable
  blank appe accepted Program HOR Document ABOVE **( (({ {}, typed ordin lot globals gets garb garbage center SIX
  Items DEFA DEFAULT )). }>; ud seg resses pressed meta late idle addresses adding Must Fl Col unsafe suffix scheme
  promises ki handling costs assume anything [... LI HO Global GREE )" '__ terminal modify much istutils indicating
  implements homepage fallback executed desired belong STER RET Ignore Dependents Distutils presence prevent owner
  mock impro greater explicitly ename device children Validation Proto PY Identifier Gateway DELET CII ASCII
  threading passing keeps execute dump cks alive SINGLE NodeJS NOWLED NOWLEDGE ITY Ext ACKNOWLEDGE logo cat arrays
  acity ULATION UID TABULATION SHI SHIFT Queue MO Lin Internal Header Dire world uments safety routing noun lier
  installed groups distutils ctx codecov certificate bra answers ault ZON ZONTAL UTF PLUS IZONTAL HORIZONTAL FEED
  Either Api '.' signed kept double compon browsers argv arri actually _, URE TRANSM TRANSMIS TRANSMISSION Sessions
  Ra MINUS IPv ILLA Host EDILLA CEDILLA CAR Appro Access whitespace undici ulate minutes ensures computed cum
  blocking ale Filter FORM Des Additional ACTION why trailing room related reground posed iterable ffect digest
  dashboard dm cach cjs bash appear __.__ REAT NotImplement DAT veral tt reported prepend perim periment perimental
  ious erts cv arm Sho README Fact DELETE Del CHE Assistant unic selected provider occurs inspect happen delta Ro
  Option priate permissions parallel invoked dirname div approval appropriate Var Some Socks Servers Mark Lj EXCL
  Back ., "></ rade ier helper grade etime enough eas diff cc alone VEN Transport Fetch =_ )); "% }' xt successfully
  speed reply password occurred newline itive finity deletion corator better __. []> Next Maximum ESS Convers ">=
  {})} windo window unrecognized strategy prototype produce intercept hy expiration certain cates authentication ];
  Names LOCK Currently BLOCK
`
  .trim()
  .split(/\s+/)
